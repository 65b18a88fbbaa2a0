/* CUBIC whose first window is larger and spread, as a congestion control of the kernel (struct_ops). The rules are in spread.h and
 * cubic.h.
 */
#include "kernel.h"
#include "cubic.h"
#include "spread.h"
#include "settings.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* As in newcwv.bpf.c. */
extern int CONFIG_HZ __kconfig __weak;

struct spread {
	struct cubic cubic;
	/* The first window is on its way, paced. */
	u32 spreading;
};

_Static_assert(sizeof(struct spread) <= 104, "the private state of a congestion control");

INLINE void end(struct sock *sk, struct spread *spread)
{
	if (!spread->spreading)
		return;
	spread->spreading = 0;
	if (sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
}

SEC("struct_ops")
void BPF_PROG(spread_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct spread *spread = PRIVATE(sk);

	spread->cubic = (struct cubic){ .round_end = tp->snd_nxt };
	spread->spreading = 0;
	/* A connection that takes it up later keeps its window, and so does one that had lost its SYN more than once. */
	if (settings.initial_window && !tp->data_segs_out && !lost_syns(tp->snd_cwnd, tp->total_retrans))
		tp->snd_cwnd = least(settings.initial_window, tp->snd_cwnd_clamp);
}

SEC("struct_ops")
void BPF_PROG(spread_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct spread *spread = PRIVATE(sk);
	struct window w = window_of(tp);
	struct ack ack = ack_of(tp, sample->rtt_us, sample->pkts_acked);
	u32 state = ca_state(sk);

	if (ack.acked)
		end(sk, spread);
	cubic_acked(&spread->cubic, &w, &ack, state == CA_CWR || state == CA_RECOVERY);
	tp->snd_ssthresh = w.ssthresh;
}

SEC("struct_ops")
void BPF_PROG(spread_cong_avoid, struct sock *sk, u32 number, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct spread *spread = PRIVATE(sk);
	struct window w = window_of(tp);
	struct ack ack = ack_of(tp, 0, 0);

	if (in_use(&w, &ack))
		cubic_grow(&spread->cubic, &w, ack.now_us, acked);
	set_window(tp, &w);
}

SEC("struct_ops")
u32 BPF_PROG(spread_ssthresh, struct sock *sk)
{
	struct spread *spread = PRIVATE(sk);

	return cubic_threshold(&spread->cubic, ((struct tcp_sock *)sk)->snd_cwnd);
}

SEC("struct_ops")
void BPF_PROG(spread_cwnd_event, struct sock *sk, u32 event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct spread *spread = PRIVATE(sk);
	u64 gap_ns;

	if (event != EVENT_TX_START)
		return;
	if (tp->data_segs_out) {
		u32 ticks = (u32)bpf_jiffies64() - tp->lsndtime;

		cubic_restart(&spread->cubic, tp->tcp_mstamp, (u64)ticks * 1000000 / (CONFIG_HZ ? CONFIG_HZ : 250));
		return;
	}
	gap_ns = spread_gap_ns(tp->srtt_us, tp->snd_cwnd);
	if (gap_ns && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		sk->sk_pacing_rate = 1000000000ull * tp->mss_cache / gap_ns;
		spread->spreading = 1;
	}
}

SEC("struct_ops")
void BPF_PROG(spread_set_state, struct sock *sk, u8 state)
{
	struct spread *spread = PRIVATE(sk);

	if (state == CA_OPEN || state == CA_DISORDER)
		return;
	end(sk, spread);
	if (state == CA_LOSS)
		cubic_timed_out(&spread->cubic);
}

/* One segment at a time while the window is spread; later the kernel's own two. */
SEC("struct_ops")
u32 BPF_PROG(spread_min_tso_segs, struct sock *sk)
{
	const struct spread *spread = PRIVATE(sk);

	return spread->spreading ? 1 : 2;
}

SEC("struct_ops")
u32 BPF_PROG(spread_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC(STRUCT_OPS_LINK)
struct tcp_congestion_ops ff_spread = {
	.init = (void *)spread_init,
	.pkts_acked = (void *)spread_pkts_acked,
	.cong_avoid = (void *)spread_cong_avoid,
	.ssthresh = (void *)spread_ssthresh,
	.cwnd_event = (void *)spread_cwnd_event,
	.set_state = (void *)spread_set_state,
	.min_tso_segs = (void *)spread_min_tso_segs,
	.undo_cwnd = (void *)spread_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ff_spread",
};
