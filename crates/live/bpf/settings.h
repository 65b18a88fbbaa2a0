/* What `fleetfoot attach` writes into a program before it is loaded (`crates/live/src/bpf/object.rs`). */
#ifndef FLEETFOOT_SETTINGS_H
#define FLEETFOOT_SETTINGS_H

#include "types.h"

struct settings {
	/* Only connections of this network namespace; 0: of every one. */
	u64 namespace_cookie;
	/* Segments; 0: left as it is. */
	u32 initial_window;
	/* 0: left as they are. */
	u32 rto_min_us, delack_max_us;
	/* Packets that a group announces; codepoint of layout B, 0: layout A. */
	u32 group_length, codepoint;
	/* Hooks of cdg and newcwv report what they do. */
	u32 trace;
};

const volatile struct settings settings SEC(".rodata.settings");

/* Segments of the first window of a connection whose SYN or SYN-ACK had to be sent again more than once: Linux, `tcp_init_transfer`.
 * RFC 5681 3.1 asks for it after the first time, from when the first timeout was 3 s and not 1 s.
 */
#define WINDOW_AFTER_LOST_SYNS 1

/* Whether the kernel has just given a connection that window. The path loses packets: a larger one would take that back. A route whose
 * `initcwnd` is one segment does not count as such.
 */
INLINE int lost_syns(u32 cwnd, u32 total_retrans)
{
	return cwnd == WINDOW_AFTER_LOST_SYNS && total_retrans > 1;
}

#endif
