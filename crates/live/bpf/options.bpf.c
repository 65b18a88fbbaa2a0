/* Initial window, RTO minimum and delayed ACK maximum of new connections (sockops), where the kernel lets a program set them.
 *
 * Source: bpf-helpers(7), bpf_setsockopt: TCP_BPF_IW, TCP_BPF_RTO_MIN, TCP_BPF_DELACK_MAX. The kernel takes times between two of its
 * ticks and 200 ms; what it refuses is counted and stays as it was. The window
 * of a connection that had lost its SYN more than once stays one segment.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "settings.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define SOL_TCP 6
#define CONNECTIONS 0
#define REFUSED 1

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

INLINE void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

INLINE void set(struct bpf_sock_ops *ops, int option, u32 wanted)
{
	int value = wanted;

	if (value && bpf_setsockopt(ops, SOL_TCP, option, &value, sizeof(value)))
		count(REFUSED);
}

SEC("sockops")
int options(struct bpf_sock_ops *ops)
{
	u32 op = ops->op;
	int established = op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;

	/* Times are set before the handshake, too, whose RTT begins the estimate; accepted sockets have those of their listener. */
	if (!established && op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_TCP_LISTEN_CB)
		return 1;
	if (settings.namespace_cookie && bpf_get_netns_cookie(ops) != settings.namespace_cookie)
		return 1;
	if (established) {
		count(CONNECTIONS);
		if (!lost_syns(ops->snd_cwnd, ops->total_retrans))
			set(ops, TCP_BPF_IW, settings.initial_window);
	}
	set(ops, TCP_BPF_RTO_MIN, settings.rto_min_us);
	set(ops, TCP_BPF_DELACK_MAX, settings.delack_max_us);
	return 1;
}
