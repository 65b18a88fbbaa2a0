//! The throughput equation: what a TCP would send with this loss event rate and round-trip time.
//!
//! ```text
//!                             s
//! X = ---------------------------------------------------------
//!     R sqrt(2 b p / 3) + t_RTO 3 sqrt(3 b p / 8) p (1 + 32 p^2)
//! ```
//!
//! **Source.** RFC 5348 3.1, with b = 1 packet per acknowledgment.
//! **Deviations.** None known.

/// The rate (bytes per second) that the equation allows packets of `segment` bytes, for the loss event rate `p` above
/// zero, a round-trip time `rtt` and a timeout `t_rto` in seconds.
pub fn throughput(segment: f64, rtt: f64, t_rto: f64, p: f64) -> f64 {
    let denominator =
        rtt * libm::sqrt(2.0 * p / 3.0) + t_rto * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    segment / denominator
}

/// The loss event rate at which the equation allows `rate` bytes per second. Within [`LEAST_P`] and 1: outside what those
/// allow, the nearer of both.
pub fn loss_event_rate(segment: f64, rtt: f64, t_rto: f64, rate: f64) -> f64 {
    let allowed = |p| throughput(segment, rtt, t_rto, p);
    if rate <= allowed(1.0) {
        return 1.0;
    }
    if rate >= allowed(LEAST_P) {
        return LEAST_P;
    }
    // The equation falls with p: bisection, on a logarithmic scale, far closer than the 5 % that RFC 5348 6.3.1 asks for.
    let (mut low, mut high) = (LEAST_P, 1.0);
    for _ in 0..STEPS {
        let middle = libm::sqrt(low * high);
        if allowed(middle) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::sqrt(low * high)
}

/// Smallest loss event rate above zero that counts as one: about what feedback can carry.
pub const LEAST_P: f64 = 1e-9;

/// Halvings of the logarithm of the range: from nine decades to a billionth of one.
const STEPS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::{LEAST_P, loss_event_rate, throughput};
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn hand_worked_values() {
        // s = 1460 B, R = 0.1 s, t_RTO = 0.4 s, p = 0.01:
        // 0.1 sqrt(0.02 / 3) = 0.008164966; 0.4 * 3 * sqrt(0.03 / 8) * 0.01 * 1.0032 = 0.000737196.
        let x = throughput(1460.0, 0.1, 0.4, 0.01);
        assert!((x - 1460.0 / (0.008_164_966 + 0.000_737_196)).abs() < 1.0, "{x}");
        assert!((x - 164_005.0).abs() < 1.0, "{x}");
        // p = 1, R = 1 s, t_RTO = 4 s, s = 1 B: 0.816497 + 12 * 0.612372 * 33 = 243.3158.
        let x = throughput(1.0, 1.0, 4.0, 1.0);
        assert!((1.0 / x - 243.3158).abs() < 1e-3, "{}", 1.0 / x);
        // Small p: the square root law, 1.2247 s / (R sqrt(p)).
        let x = throughput(1000.0, 0.05, 0.2, 1e-8);
        assert!(
            (x / (1000.0 * 1.224_745 / (0.05 * 1e-4)) - 1.0).abs() < 1e-4,
            "{x}"
        );
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(segment in 1.0_f64..9000.0, rtt in 1e-5_f64..10.0, exponent in -8.5_f64..0.0) {
            let p = libm::pow(10.0, exponent);
            let rate = throughput(segment, rtt, 4.0 * rtt, p);
            let found = loss_event_rate(segment, rtt, 4.0 * rtt, rate);
            prop_assert!((found / p - 1.0).abs() < 1e-6, "{p} became {found}");
        }

        #[test]
        fn more_loss_is_less_rate(rtt in 1e-5_f64..10.0, p in LEAST_P..0.99, factor in 1.0001_f64..2.0) {
            let more = (p * factor).min(1.0);
            prop_assert!(throughput(1460.0, rtt, 4.0 * rtt, more) < throughput(1460.0, rtt, 4.0 * rtt, p));
        }
    }

    #[test]
    fn rates_outside_are_held() {
        assert_eq!(loss_event_rate(1460.0, 0.1, 0.4, 0.0), 1.0);
        assert_eq!(loss_event_rate(1460.0, 0.1, 0.4, 1e18), LEAST_P);
    }
}
