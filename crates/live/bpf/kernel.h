/* The fields of the kernel's TCP that the programs read and write; where they stand is found at load time (CO-RE).
 *
 * A congestion control in BPF may write snd_cwnd, snd_cwnd_cnt, snd_cwnd_stamp, snd_ssthresh, sk_pacing_rate, sk_pacing_status and
 * its private state, and nothing else.
 */
#ifndef FLEETFOOT_KERNEL_H
#define FLEETFOOT_KERNEL_H

#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	u32 snd_una, snd_nxt, write_seq;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_cwnd_stamp, snd_ssthresh;
	u32 prior_cwnd, max_packets_out;
	u32 packets_out, sacked_out, lost_out, retrans_out, total_retrans;
	u32 delivered, data_segs_out, lsndtime;
	u32 srtt_us, mss_cache, snd_wnd;
	u64 tcp_mstamp;
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	u32 flags;
	char name[16];
};

#pragma clang attribute pop

/* enum tcp_ca_state */
#define CA_OPEN 0
#define CA_DISORDER 1
#define CA_CWR 2
#define CA_RECOVERY 3
#define CA_LOSS 4

/* enum tcp_ca_event */
#define EVENT_TX_START 0
#define EVENT_CWND_RESTART 1
#define EVENT_COMPLETE_CWR 2
#define EVENT_LOSS 3

/* Segments of the kernel's own initial window (TCP_INIT_CWND, RFC 6928). */
#define INITIAL_WINDOW 10

/* A namespace may make it its default, and a program without rights may choose it. */
#define TCP_CONG_NON_RESTRICTED 1

/* enum sk_pacing */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

#define PRIVATE(sk) ((void *)((struct inet_connection_sock *)(sk))->icsk_ca_priv)

INLINE u32 ca_state(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

INLINE u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

INLINE struct window window_of(const struct tcp_sock *tp)
{
	struct window w = { tp->snd_cwnd, tp->snd_ssthresh, tp->snd_cwnd_cnt, tp->snd_cwnd_clamp };

	return w;
}

INLINE void set_window(struct tcp_sock *tp, const struct window *w)
{
	tp->snd_cwnd = w->cwnd;
	tp->snd_ssthresh = w->ssthresh;
	tp->snd_cwnd_cnt = w->count;
}

/* What an acknowledgment finds, with the RTT and the number of segments that the kernel reports apart. */
INLINE struct ack ack_of(struct tcp_sock *tp, s32 rtt_us, u32 acked)
{
	struct ack ack = {
		.now_us = tp->tcp_mstamp,
		.rtt_us = rtt_us,
		.acked = acked,
		.sacked = tp->sacked_out,
		.delivered = tp->delivered,
		.in_flight = packets_in_flight(tp),
		.una = tp->snd_una,
		.nxt = tp->snd_nxt,
		.srtt_us8 = tp->srtt_us,
		.mss = tp->mss_cache,
		.max_out = tp->max_packets_out,
		.full = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited),
	};

	return ack;
}

#endif
