/* Marks of super-packets on what leaves an interface (tc, TCX egress). The rules are in marks.h.
 *
 * IPv4 TCP packets with data are marked. What the interface will cut into segments later (TSO, GSO) cannot be marked and is counted, and so
 * are IPv6, whose mark needs an option, packets whose DSCP or ECN field a mark would overwrite, and packets that may be fragmented. SYN, RST
 * and pure ACKs are left alone. The interface has an Ethernet header (`crates/live/src/bpf/hook.rs`).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "marks.h"
#include "settings.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define MARKED 0
#define AGGREGATES 1
#define OTHERS 2
#define CLASSES 3
#define FRAGMENTABLE 4
#define IP_DF 0x4000
#define IP_MORE_OR_OFFSET 0x3fff
#define IPPROTO_TCP 6
#define NEXT -1 /* TCX_NEXT: what else is attached decides */

struct flow {
	u32 source, destination;
	u16 source_port, destination_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow);
	__type(value, struct marker);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 5);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

INLINE void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

INLINE void replace(struct __sk_buff *skb, u32 at, u16 old, u16 new)
{
	if (old == new)
		return;
	bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), old, new, 2);
	bpf_skb_store_bytes(skb, ETH_HLEN + at, &new, sizeof(new), 0);
}

SEC("tcx/egress")
int mark(struct __sk_buff *skb)
{
	struct marker *marker, fresh = {};
	struct marked marked;
	struct flow flow = {};
	struct tcphdr tcp;
	struct iphdr ip;
	u32 headers, length;
	u16 word, fragment;
	int obstacle;
	u8 said;

	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		count(OTHERS);
		return NEXT;
	}
	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return NEXT;
	fragment = bpf_ntohs(ip.frag_off);
	if (ip.version != 4 || ip.ihl < 5 || ip.protocol != IPPROTO_TCP || (fragment & IP_MORE_OR_OFFSET))
		return NEXT;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + ip.ihl * 4, &tcp, sizeof(tcp)))
		return NEXT;
	headers = ip.ihl * 4 + tcp.doff * 4;
	length = bpf_ntohs(ip.tot_len);
	if (tcp.syn || tcp.rst || length < headers || (length == headers && !tcp.fin))
		return NEXT;
	if (skb->gso_segs > 1) {
		count(AGGREGATES);
		return NEXT;
	}
	obstacle = marker_obstacle(ip.tos, fragment & IP_DF, settings.codepoint);
	if (obstacle != MARK_FREE) {
		count(obstacle == MARK_CLASS ? CLASSES : FRAGMENTABLE);
		return NEXT;
	}
	flow.source = ip.saddr;
	flow.destination = ip.daddr;
	flow.source_port = tcp.source;
	flow.destination_port = tcp.dest;
	marker = bpf_map_lookup_elem(&flows, &flow);
	if (!marker) {
		bpf_map_update_elem(&flows, &flow, &fresh, BPF_NOEXIST);
		marker = bpf_map_lookup_elem(&flows, &flow);
		if (!marker)
			return NEXT;
	}
	said = marker_next(marker, settings.group_length, tcp.fin, bpf_get_prandom_u32(), settings.codepoint ? 0xff : 0xfff);
	if (!said)
		return NEXT;
	marked = marker_write(said, marker->id, ip.tos, settings.codepoint);
	/* Version, header length and type of service are one word of the checksum. */
	word = bpf_htons(0x4000 | ip.ihl << 8 | ip.tos);
	replace(skb, 0, word, bpf_htons(0x4000 | ip.ihl << 8 | marked.tos));
	replace(skb, offsetof(struct iphdr, id), ip.id, bpf_htons(marked.ip_id));
	count(MARKED);
	return NEXT;
}
