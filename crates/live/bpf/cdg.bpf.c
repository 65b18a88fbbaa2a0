/* CDG as a congestion control of the kernel (struct_ops). The rules are in cdg.h. */
#include "kernel.h"
#include "cdg.h"
#include "trace.h"

char _license[] SEC("license") = "Dual MIT/GPL";

_Static_assert(sizeof(struct cdg) <= 104, "the private state of a congestion control");

SEC("struct_ops")
void BPF_PROG(cdg_init_socket, struct sock *sk)
{
	struct traced traced = trace_begin(sk, TRACE_INIT, 0);

	cdg_init(PRIVATE(sk), ((struct tcp_sock *)sk)->snd_cwnd);
	trace_end(sk, &traced, 0);
}

SEC("struct_ops")
void BPF_PROG(cdg_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct ack ack = ack_of((struct tcp_sock *)sk, sample->rtt_us, sample->pkts_acked);
	struct traced traced = trace_begin(sk, TRACE_ACKED, ca_state(sk));

	cdg_sample(PRIVATE(sk), &ack);
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
void BPF_PROG(cdg_cong_avoid, struct sock *sk, u32 number, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct window w = window_of(tp);
	struct ack ack = ack_of(tp, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_AVOID, acked);
	u32 random = bpf_get_prandom_u32();

	cdg_avoid(PRIVATE(sk), &w, &ack, acked, random);
	set_window(tp, &w);
	traced.random = random;
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
u32 BPF_PROG(cdg_ssthresh, struct sock *sk)
{
	struct traced traced = trace_begin(sk, TRACE_THRESHOLD, 0);
	u32 threshold = cdg_threshold(PRIVATE(sk), ((struct tcp_sock *)sk)->snd_cwnd);

	traced.value = threshold;
	trace_end(sk, &traced, 0);
	return threshold;
}

SEC("struct_ops")
void BPF_PROG(cdg_cwnd_event, struct sock *sk, u32 event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ack ack = ack_of(tp, 0, 0);
	struct traced traced = trace_begin(sk, TRACE_EVENT, event);

	if (event == EVENT_COMPLETE_CWR)
		cdg_recovered(PRIVATE(sk), &ack);
	else if (event == EVENT_CWND_RESTART)
		cdg_restart(PRIVATE(sk), tp->snd_cwnd, tp->delivered);
	trace_end(sk, &traced, &ack);
}

SEC("struct_ops")
void BPF_PROG(cdg_set_state, struct sock *sk, u8 state)
{
	struct traced traced = trace_begin(sk, TRACE_STATE, state);

	if (state == CA_LOSS)
		cdg_timed_out(PRIVATE(sk));
	trace_end(sk, &traced, 0);
}

SEC("struct_ops")
u32 BPF_PROG(cdg_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC(STRUCT_OPS_LINK)
struct tcp_congestion_ops ff_cdg = {
	.init = (void *)cdg_init_socket,
	.pkts_acked = (void *)cdg_pkts_acked,
	.cong_avoid = (void *)cdg_cong_avoid,
	.ssthresh = (void *)cdg_ssthresh,
	.cwnd_event = (void *)cdg_cwnd_event,
	.set_state = (void *)cdg_set_state,
	.undo_cwnd = (void *)cdg_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ff_cdg",
};
