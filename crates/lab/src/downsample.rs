//! Fewer points with the same look.

/// At most about `points` members of `line` (times ascending): first and last, and of each of equal spans of time the
/// first, the smallest, the largest and the last, so that no peak is lost.
pub(crate) fn downsample<T: Copy>(
    line: &[T],
    points: usize,
    time: impl Fn(&T) -> f64,
    value: impl Fn(&T) -> f64,
) -> Vec<T> {
    if line.len() <= points {
        return line.to_vec();
    }
    let spans = (points / 4).max(1);
    let (begin, end) = (time(&line[0]), time(&line[line.len() - 1]));
    let width = (end - begin) / spans as f64;
    let mut kept = Vec::with_capacity(spans * 4);
    let mut from = 0;
    for span in 0..spans {
        let limit = begin + width * (span + 1) as f64;
        let to = if span + 1 == spans {
            line.len()
        } else {
            from + line[from..].partition_point(|point| time(point) < limit)
        };
        if from == to {
            continue;
        }
        let members = from..to;
        let by_value = |a: &usize, b: &usize| value(&line[*a]).total_cmp(&value(&line[*b]));
        let smallest = members.clone().min_by(by_value).unwrap_or(from);
        let largest = members.max_by(by_value).unwrap_or(from);
        let mut chosen = [from, smallest, largest, to - 1];
        chosen.sort_unstable();
        let mut last = None;
        for index in chosen {
            if last != Some(index) {
                kept.push(line[index]);
                last = Some(index);
            }
        }
        from = to;
    }
    kept
}

/// Points (value, share of all) of the distribution of `sorted` out of `all` members: about `points` of them, denser at the upper end.
pub(super) fn distribution(sorted: &[f64], all: usize, points: usize) -> Vec<(f64, f64)> {
    let n = sorted.len();
    if n == 0 {
        return Vec::new();
    }
    let point = |index: usize| (sorted[index], (index + 1) as f64 / all as f64);
    if n <= points {
        return (0..n).map(point).collect();
    }
    // Half of the points evenly, half by halving the distance to the end: both median and tail keep their shape.
    let even = (0..points / 2).map(|i| i * (n - 1) / (points / 2 - 1));
    let tail = (0..points / 2).map(|i| {
        let rest = libm::pow(n as f64, 1.0 - i as f64 / (points / 2 - 1) as f64);
        n - (rest as usize).clamp(1, n)
    });
    let mut indices = even.chain(tail).collect::<Vec<_>>();
    indices.sort_unstable();
    indices.dedup();
    indices.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::{distribution, downsample};

    #[test]
    fn thinning_keeps_ends_and_extremes_and_order() {
        let line = (0..100_000_u32)
            .map(|i| {
                (
                    f64::from(i),
                    if i == 77_777 { 9.0 } else { f64::from(i % 7) / 10.0 },
                )
            })
            .collect::<Vec<_>>();
        let kept = downsample(&line, 2000, |p| p.0, |p| p.1);
        assert!(kept.len() <= 2000 && kept.len() > 1000);
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0.0, 99_999.0));
        assert!(kept.iter().any(|point| point.1 == 9.0));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(downsample(&line[..5], 2000, |p| p.0, |p| p.1), line[..5]);
    }

    #[test]
    fn a_thinned_distribution_keeps_median_tail_and_the_share_that_is_missing() {
        let sorted = (1..=50_000).map(f64::from).collect::<Vec<_>>();
        let points = distribution(&sorted, 100_000, 200);
        assert!(points.len() <= 200);
        assert_eq!(points[0], (1.0, 0.000_01));
        assert_eq!(points[points.len() - 1], (50_000.0, 0.5));
        assert!(
            points
                .iter()
                .all(|(value, share)| (value / 100_000.0 - share).abs() < 1e-12)
        );
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(points.iter().filter(|point| point.0 > 49_000.0).count() > 40);
    }
}
