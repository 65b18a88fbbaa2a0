/* Integers for both worlds: the kernel's BPF machine, and the host on which the tests call the same functions. */
#ifndef FLEETFOOT_TYPES_H
#define FLEETFOOT_TYPES_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define INLINE static inline __attribute__((always_inline))

/* A window in segments. `count`: acknowledged segments that have not yet paid for one more; `clamp`: the most it may be. */
struct window {
	u32 cwnd;
	u32 ssthresh;
	u32 count;
	u32 clamp;
};

/* What an acknowledgment finds. Times are of a clock of microseconds that may wrap. */
struct ack {
	u64 now_us;
	/* RTT of the segment sent last among those it acknowledged; 0 or less: no sample. */
	s32 rtt_us;
	/* Segments that it acknowledged, cumulatively. */
	u32 acked;
	/* Segments that are selectively acknowledged after it and not cumulatively. */
	u32 sacked;
	/* Segments that arrived since the connection began. */
	u32 delivered;
	u32 in_flight;
	/* First byte that is not acknowledged, first that was never sent. */
	u32 una;
	u32 nxt;
	/* Smoothed RTT in eighths of a microsecond; 0: none yet. */
	u32 srtt_us8;
	u32 mss;
	/* Most segments in flight in the current window. */
	u32 max_out;
	/* The window was the limit when data last left. */
	u32 full;
	/* Segments are spaced by an application's or a queue's pacing. */
	u32 paced;
};

INLINE u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

INLINE u32 most(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Whether sequence number or counter `a` comes after `b`. */
INLINE int later(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* Whether an acknowledgment may let the window grow: it was full, or slow start uses half of it. */
INLINE int in_use(const struct window *w, const struct ack *ack)
{
	return ack->full || (w->cwnd < w->ssthresh && w->cwnd < 2 * ack->max_out);
}

/* Slow start up to the threshold; what is left of `acked` is congestion avoidance's. */
INLINE u32 slow_start(struct window *w, u32 acked)
{
	u32 room = w->ssthresh - w->cwnd;
	u32 grown = least(acked, room);

	w->cwnd = least(w->cwnd + grown, w->clamp);
	return acked - grown;
}

/* Congestion avoidance at a price of `price` acknowledged segments for one. */
INLINE void avoid(struct window *w, u32 price, u32 acked)
{
	if (!price)
		price = 1;
	/* What was paid while a segment cost more buys one at once. */
	if (w->count >= price) {
		w->count = 0;
		w->cwnd++;
	}
	w->count += acked;
	if (w->count >= price) {
		u32 bought = w->count / price;

		w->count -= bought * price;
		w->cwnd += bought;
	}
	w->cwnd = least(w->cwnd, w->clamp);
}

#endif
