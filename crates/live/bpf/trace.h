/* What the hooks of a congestion control were given and what they did, for tests that repeat it with the same rules elsewhere.
 * Without `settings.trace` nothing of it is in the program that the kernel runs.
 */
#ifndef FLEETFOOT_TRACE_H
#define FLEETFOOT_TRACE_H

#include "kernel.h"
#include "settings.h"

#define TRACE_INIT 0
#define TRACE_ACKED 1
#define TRACE_AVOID 2
#define TRACE_THRESHOLD 3
#define TRACE_EVENT 4
#define TRACE_STATE 5
#define TRACE_UNDO 6

struct traced {
	u64 socket;
	u32 hook;
	/* ACKED: congestion state; AVOID: segments; THRESHOLD: the answer; EVENT and STATE: which. */
	u32 value;
	/* The draw of CDG's AVOID, else the congestion state; segments outstanding and retransmitted. */
	u32 random, flight, retransmitted;
	u32 pad;
	struct ack ack;
	struct window before, after;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} trace SEC(".maps");

INLINE struct traced trace_begin(struct sock *sk, u32 hook, u32 value)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct traced traced = {};

	if (!settings.trace)
		return traced;
	traced.socket = (u64)sk;
	traced.hook = hook;
	traced.value = value;
	traced.random = ca_state(sk);
	traced.flight = tp->packets_out;
	traced.retransmitted = tp->total_retrans;
	traced.before = window_of(tp);
	return traced;
}

INLINE void trace_end(struct sock *sk, struct traced *traced, const struct ack *ack)
{
	if (!settings.trace)
		return;
	if (ack)
		traced->ack = *ack;
	traced->after = window_of((struct tcp_sock *)sk);
	bpf_ringbuf_output(&trace, traced, sizeof(*traced), 0);
}

#endif
