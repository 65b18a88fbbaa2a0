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

#endif
