/* CUBIC and its HyStart: the rules of `crates/core/src/cc/cubic_linux.rs`, `hystart.rs` and `cubic.rs` (`cubic_arithmetic = "linux"`).
 *
 * Source: those files, which name theirs. Deviations from core: none; ticks are 4 ms on every kernel, whatever its own are.
 * tests/attach_rules.rs compares both ACK by ACK.
 */
#ifndef FLEETFOOT_CUBIC_H
#define FLEETFOOT_CUBIC_H

#include "types.h"

#define CUBIC_TICKS 250u /* per second */
#define CUBIC_TICK_US 4000u
#define CUBIC_FRACTION 10 /* binary places of a second */
#define CUBIC_STEEPNESS 410u /* 0.4, in 1/1024 per (100 ms)^3 and tenfold */
#define CUBIC_BETA 717u /* of 1024 */
#define CUBIC_FRIENDLINESS 15u /* 8 (1024 + beta) / 3 / (1024 - beta) */

#define HYSTART_LOW_WINDOW 16
#define HYSTART_SAMPLES 8
#define HYSTART_ACK_DELTA_US 2000
#define HYSTART_DELAY_MIN_NS 4000000ull
#define HYSTART_DELAY_MAX_NS 16000000ull
#define HYSTART_OFFLOAD (4ull << 16) /* four packets of 64 KiB */
#define HYSTART_OFFLOAD_MAX_NS 1000000ull

/* Windows in segments, times in ticks unless their names say otherwise. What is paid is `window.count`. */
struct cubic {
	/* Acknowledged segments that one segment of growth takes. */
	u32 price;
	/* The window before the last reduction, after fast convergence; 0: none, or a timeout since. */
	u32 last_max;
	/* Window and time of the last look at the curve. */
	u32 seen_window, seen_at;
	/* Plateau, and time to it in 1/1024 s. */
	u32 origin, k;
	u32 epoch;
	/* Acknowledged segments that NewReno's estimate has not used, and the estimate. */
	u32 estimate_paid, estimate;
	u32 delay_min_us;
	/* An epoch is under way; HyStart has begun; it ended slow start; ACKs that it looked at in this round. */
	u32 in_epoch : 1, started : 1, found : 1, samples : 4;
	u32 round_min_us;
	/* A round ends when this is acknowledged. */
	u32 round_end;
	u32 pad;
	u64 round_start_us, last_ack_us;
};

INLINE u32 cubic_scaled(u32 window, u32 numerator, u32 denominator)
{
	return (u64)window * numerator / denominator;
}

INLINE u32 cubic_bits(u64 a)
{
	u32 bits = 0;

	if (a >> 32) {
		bits += 32;
		a >>= 32;
	}
	if (a >> 16) {
		bits += 16;
		a >>= 16;
	}
	if (a >> 8) {
		bits += 8;
		a >>= 8;
	}
	if (a >> 4) {
		bits += 4;
		a >>= 4;
	}
	if (a >> 2) {
		bits += 2;
		a >>= 2;
	}
	if (a >> 1) {
		bits += 1;
		a >>= 1;
	}
	return bits + (u32)a;
}

/* To about 0.2 per cent: an estimate from the leading bits, and one step of Newton and Raphson's method with a third taken as
 * 341/1024.
 */
INLINE u32 cubic_root(u64 a)
{
	/* 64 times the cube root of 8 to 63. */
	static const u16 estimates[56] = {
		133, 139, 144, 148, 153, 157, 161, 166, 167, 171, 174, 178, 180, 183, 186, 189, 191, 195, 197,
		200, 202, 204, 207, 209, 210, 212, 214, 216, 219, 221, 223, 225, 227, 229, 231, 232, 234, 235,
		237, 239, 241, 242, 244, 246, 247, 249, 250, 252, 254, 255, 256, 258, 260, 261, 262, 264,
	};
	u32 thirds = cubic_bits(a) * 84 / 256;
	u64 leading, x, estimate = 128;

	if (thirds)
		thirds--;
	leading = a >> (3 * thirds);
	if (leading >= 8 && leading < 64)
		estimate = estimates[leading - 8];
	x = (estimate << thirds) / 64;
	if (x < 2)
		x = 2;
	return (u32)((2 * x + a / (x * (x - 1))) * 341 / 1024);
}

/* An RTT sample. False if it is not to be looked at: in the first second of an epoch queues are still full. */
INLINE int cubic_sample(struct cubic *cubic, u64 now_us, s32 rtt_us)
{
	u32 now = (u32)(now_us / CUBIC_TICK_US);

	if (rtt_us <= 0)
		return 0;
	if (cubic->in_epoch && (s32)(now - cubic->epoch) < (s32)CUBIC_TICKS)
		return 0;
	if (!cubic->delay_min_us || (u32)rtt_us < cubic->delay_min_us)
		cubic->delay_min_us = rtt_us;
	return 1;
}

/* What offload may add to the RTT at the rate of slow start. */
INLINE u64 hystart_offload_ns(const struct window *w, const struct ack *ack)
{
	u64 time = HYSTART_OFFLOAD * ack->srtt_us8 * 125;
	u64 rate = 2ull * w->cwnd * ack->mss;

	if (!ack->srtt_us8)
		return 0;
	if (!rate || time >= rate * HYSTART_OFFLOAD_MAX_NS)
		return HYSTART_OFFLOAD_MAX_NS;
	return time / rate;
}

/* An acknowledgment with a sample in slow start; true when slow start should end. */
INLINE int hystart(struct cubic *cubic, const struct window *w, const struct ack *ack, int round_start)
{
	u64 delay_ns = 1000ull * cubic->delay_min_us, eighth = 125ull * cubic->delay_min_us, now = ack->now_us;
	int found = 0;

	if (cubic->found)
		return 0;
	if (round_start || !cubic->started) {
		cubic->started = 1;
		cubic->round_start_us = cubic->last_ack_us = now;
		cubic->round_min_us = 0xffffffff;
		cubic->samples = 0;
	}
	if (w->cwnd < HYSTART_LOW_WINDOW)
		return 0;
	if (now - cubic->last_ack_us <= HYSTART_ACK_DELTA_US) {
		/* Paced segments of slow start leave over half a round trip. A branch would double what the verifier looks at. */
		u64 train_ns = (delay_ns + hystart_offload_ns(w, ack)) >> ((ack->paced ^ 1) & 1);

		cubic->last_ack_us = now;
		found = (now - cubic->round_start_us) * 1000 > train_ns;
	}
	cubic->round_min_us = least(cubic->round_min_us, ack->rtt_us);
	if (cubic->samples < HYSTART_SAMPLES) {
		cubic->samples++;
	} else {
		u64 over_ns = cubic->round_min_us > cubic->delay_min_us ?
			1000ull * (cubic->round_min_us - cubic->delay_min_us) : 0;

		if (eighth < HYSTART_DELAY_MIN_NS)
			eighth = HYSTART_DELAY_MIN_NS;
		if (eighth > HYSTART_DELAY_MAX_NS)
			eighth = HYSTART_DELAY_MAX_NS;
		if (over_ns > eighth)
			found = 1;
	}
	cubic->found = found;
	return found;
}

INLINE void hystart_forget(struct cubic *cubic)
{
	cubic->started = cubic->found = cubic->samples = 0;
}

/* An acknowledgment's sample; it may end slow start. `reducing`: the window is a recovery's. */
INLINE void cubic_acked(struct cubic *cubic, struct window *w, const struct ack *ack, int reducing)
{
	int round_start = ack->acked && later(ack->una, cubic->round_end);
	int sampled = cubic_sample(cubic, ack->now_us, ack->rtt_us);

	if (round_start)
		cubic->round_end = ack->nxt;
	if (!reducing && sampled && w->cwnd < w->ssthresh && hystart(cubic, w, ack, round_start))
		w->ssthresh = w->cwnd;
}

/* The curve. */
INLINE void cubic_follow(struct cubic *cubic, u32 at, u32 window, u32 acked)
{
	u64 t, distance, cube;
	u32 offset, target;

	cubic->seen_window = window;
	cubic->seen_at = at;
	if (!cubic->in_epoch) {
		cubic->in_epoch = 1;
		cubic->epoch = at;
		cubic->estimate_paid = acked;
		cubic->estimate = window;
		if (cubic->last_max > window) {
			cubic->k = cubic_root((1ull << (10 + 3 * CUBIC_FRACTION)) / CUBIC_STEEPNESS *
					      (cubic->last_max - window));
			cubic->origin = cubic->last_max;
		} else {
			cubic->k = 0;
			cubic->origin = window;
		}
	}
	t = (s64)(s32)(at - cubic->epoch) + (cubic->delay_min_us + CUBIC_TICK_US - 1) / CUBIC_TICK_US;
	t = (t << CUBIC_FRACTION) / CUBIC_TICKS;
	distance = t < cubic->k ? cubic->k - t : t - cubic->k;
	cube = CUBIC_STEEPNESS * distance * distance * distance;
	offset = (u32)(cube >> (10 + 3 * CUBIC_FRACTION));
	target = t < cubic->k ? cubic->origin - offset : cubic->origin + offset;
	cubic->price = target > window ? window / (target - window) : window * 100;
	/* Nothing is known of the path: at least five per cent per round trip. */
	if (!cubic->last_max)
		cubic->price = least(cubic->price, 20);
}

/* At least NewReno's growth. */
INLINE void cubic_befriend(struct cubic *cubic, u32 window)
{
	u32 price = window * CUBIC_FRIENDLINESS >> 3;

	if (price && cubic->estimate_paid > price) {
		u32 bought = (cubic->estimate_paid - 1) / price;

		cubic->estimate_paid -= bought * price;
		cubic->estimate += bought;
	}
	if (cubic->estimate > window)
		cubic->price = least(cubic->price, window / (cubic->estimate - window));
}

/* The price of a segment. */
INLINE void cubic_look(struct cubic *cubic, u32 at, u32 window, u32 acked)
{
	u32 since = at - cubic->seen_at;

	cubic->estimate_paid += acked;
	if (cubic->seen_window == window && (s32)since <= (s32)(CUBIC_TICKS / 32))
		return;
	if (!cubic->in_epoch || since)
		cubic_follow(cubic, at, window, acked);
	cubic_befriend(cubic, window);
	cubic->price = most(cubic->price, 2); /* at most half a window per round trip */
}

/* `acked` segments arrived and the window may grow. */
INLINE void cubic_grow(struct cubic *cubic, struct window *w, u64 now_us, u32 acked)
{
	if (w->cwnd < w->ssthresh)
		acked = slow_start(w, acked);
	if (!acked)
		return;
	cubic_look(cubic, (u32)(now_us / CUBIC_TICK_US), w->cwnd, acked);
	avoid(w, cubic->price, acked);
}

/* The threshold after a loss or a mark; `window.count` is the kernel's to clear. */
INLINE u32 cubic_threshold(struct cubic *cubic, u32 window)
{
	cubic->in_epoch = 0;
	cubic->last_max = window < cubic->last_max ? cubic_scaled(window, 1024 + CUBIC_BETA, 2048) : window;
	return most(cubic_scaled(window, CUBIC_BETA, 1024), 2);
}

/* An answer to congestion that is not CUBIC's own: the next growth begins an epoch. */
INLINE void cubic_overridden(struct cubic *cubic)
{
	cubic->in_epoch = 0;
	hystart_forget(cubic);
}

/* A timeout forgets the path. */
INLINE void cubic_timed_out(struct cubic *cubic)
{
	u32 round_end = cubic->round_end;

	*cubic = (struct cubic){ .round_end = round_end };
}

/* Data leaves when nothing was in flight, `idle_us` after the last: that time is not the curve's. */
INLINE void cubic_restart(struct cubic *cubic, u64 now_us, u64 idle_us)
{
	u32 now = (u32)(now_us / CUBIC_TICK_US), last = (u32)((now_us - idle_us) / CUBIC_TICK_US), later_epoch;

	if (!cubic->in_epoch)
		return;
	later_epoch = cubic->epoch + (now - last);
	cubic->epoch = (s32)(later_epoch - now) > 0 ? now : later_epoch;
}

#endif
