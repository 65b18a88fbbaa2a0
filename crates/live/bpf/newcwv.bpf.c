/* New-CWV over CUBIC as a congestion control of the kernel (struct_ops). The rules are in newcwv.h.
 *
 * The kernel's own validation (tcp_slow_start_after_idle) is kept from the window: its clock is set at every acknowledgment, and
 * what it does to the window when a pause ends is put back when the first segment leaves.
 */
#include "kernel.h"
#include "newcwv.h"
#include "trace.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Ticks of the kernel's clock per second, if the kernel says; else its times are taken as 4 ms. */
extern int CONFIG_HZ __kconfig __weak;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct newcwv);
} sockets SEC(".maps");

/* NULL where there was no memory for it: such a connection keeps CUBIC's threshold and NewReno's growth. */
INLINE struct newcwv *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&sockets, sk, 0, 0);
}

INLINE int is_full(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

INLINE u64 idle_us(const struct tcp_sock *tp)
{
	u32 ticks = (u32)bpf_jiffies64() - tp->lsndtime;

	return (u64)ticks * 1000000 / (CONFIG_HZ ? CONFIG_HZ : 250);
}

/* RFC 7661 4.4.3: bursts of a window that is not validated are paced. An application's or a queue's own pacing stays. */
INLINE void pace(struct sock *sk, struct newcwv *cwv)
{
	if (cwv->nonvalidated && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		cwv->paced = 1;
	} else if (!cwv->nonvalidated && cwv->paced) {
		if (sk->sk_pacing_status == SK_PACING_NEEDED)
			sk->sk_pacing_status = SK_PACING_NONE;
		cwv->paced = 0;
	}
}

/* The phase and its five minutes. */
INLINE void look(struct sock *sk, struct newcwv *cwv)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct window w = window_of(tp);

	if (ca_state(sk) <= CA_DISORDER &&
	    newcwv_before_sending(cwv, &w, tp->tcp_mstamp, tp->srtt_us, is_full(tp), INITIAL_WINDOW))
		set_window(tp, &w);
	pace(sk, cwv);
	tp->snd_cwnd_stamp = (u32)bpf_jiffies64();
}

SEC("struct_ops")
void BPF_PROG(newcwv_init_socket, struct sock *sk)
{
	struct newcwv *cwv = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	struct ack ack = ack_of((struct tcp_sock *)sk, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_INIT, 0);

	if (cwv)
		newcwv_init(cwv, ((struct tcp_sock *)sk)->snd_nxt);
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
void BPF_PROG(newcwv_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct newcwv *cwv = state_of(sk);
	struct ack ack = ack_of(tp, sample->rtt_us, sample->pkts_acked);
	struct window w = window_of(tp);
	u32 state = ca_state(sk);
	struct traced traced = trace_begin(sk, TRACE_ACKED, state);

	if (!cwv)
		return;
	/* Neither SK_PACING_NONE, which is 0 beside 1 and 2, nor by us; without a branch, since the verifier would follow both. */
	ack.paced = ((sk->sk_pacing_status + 1) >> 1) & (cwv->paced ^ 1) & 1;
	newcwv_acked(cwv, &w, &ack, state >= CA_RECOVERY);
	cubic_acked(&cwv->cubic, &w, &ack, state == CA_CWR || state == CA_RECOVERY);
	tp->snd_ssthresh = w.ssthresh;
	look(sk, cwv);
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
void BPF_PROG(newcwv_cong_avoid, struct sock *sk, u32 number, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct newcwv *cwv = state_of(sk);
	struct window w = window_of(tp);
	struct ack ack = ack_of(tp, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_AVOID, acked);

	if (cwv) {
		newcwv_avoid(cwv, &w, &ack, acked);
	} else if (in_use(&w, &ack)) {
		if (w.cwnd < w.ssthresh)
			acked = slow_start(&w, acked);
		avoid(&w, w.cwnd, acked);
	}
	set_window(tp, &w);
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
u32 BPF_PROG(newcwv_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct newcwv *cwv = state_of(sk);
	struct window w = window_of(tp);
	struct ack ack = ack_of(tp, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_THRESHOLD, 0);

	if (!cwv)
		return most(cubic_scaled(w.cwnd, CUBIC_BETA, 1024), 2);
	traced.value = newcwv_threshold(cwv, &w, ack.now_us, ack.srtt_us8, ack.full, tp->packets_out, tp->total_retrans);
	trace_end(sk, &traced, &ack);
	return traced.value;
}

/* The window that New-CWV sets in the kernel's place. */
INLINE void override(struct tcp_sock *tp, u32 window)
{
	tp->snd_cwnd = window;
	tp->snd_ssthresh = window;
	tp->snd_cwnd_cnt = 0;
}

SEC("struct_ops")
void BPF_PROG(newcwv_cwnd_event, struct sock *sk, u32 event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct newcwv *cwv = state_of(sk);
	struct ack ack = ack_of(tp, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_EVENT, event);
	u64 idle;
	u32 value;

	if (!cwv)
		return;
	switch (event) {
	case EVENT_TX_START:
		idle = idle_us(tp);
		cubic_restart(&cwv->cubic, tp->tcp_mstamp, idle);
		ack.rtt_us = idle < 0x7fffffff ? idle : 0x7fffffff; /* for the trace */
		if (cwv->kept_window > tp->snd_cwnd)
			tp->snd_cwnd = cwv->kept_window;
		if (cwv->kept_window)
			tp->snd_ssthresh = cwv->kept_ssthresh;
		cwv->kept_window = 0;
		cwv->fresh = 1;
		look(sk, cwv);
		break;
	case EVENT_CWND_RESTART:
		cwv->kept_window = tp->snd_cwnd;
		cwv->kept_ssthresh = tp->snd_ssthresh;
		break;
	case EVENT_COMPLETE_CWR:
		value = newcwv_recovered(cwv, tp->total_retrans);
		if (value)
			override(tp, value);
		break;
	case EVENT_LOSS:
		value = newcwv_timeout_threshold(cwv);
		if (value)
			tp->snd_ssthresh = value;
		break;
	}
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
void BPF_PROG(newcwv_set_state, struct sock *sk, u8 state)
{
	struct newcwv *cwv = state_of(sk);

	struct traced traced = trace_begin(sk, TRACE_STATE, state);

	if (cwv && state == CA_LOSS)
		newcwv_timed_out(cwv);
	trace_end(sk, &traced, 0);
}

SEC("struct_ops")
u32 BPF_PROG(newcwv_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct newcwv *cwv = state_of(sk);

	struct traced traced = trace_begin(sk, TRACE_UNDO, 0);

	if (cwv)
		newcwv_undone(cwv);
	trace_end(sk, &traced, 0);
	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC(STRUCT_OPS_LINK)
struct tcp_congestion_ops ff_newcwv = {
	.init = (void *)newcwv_init_socket,
	.pkts_acked = (void *)newcwv_pkts_acked,
	.cong_avoid = (void *)newcwv_cong_avoid,
	.ssthresh = (void *)newcwv_ssthresh,
	.cwnd_event = (void *)newcwv_cwnd_event,
	.set_state = (void *)newcwv_set_state,
	.undo_cwnd = (void *)newcwv_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ff_newcwv",
};
