/* Initial Spreading as far as the kernel goes: gaps of `crates/core/src/tcp/send/spreading.rs` (`bounded`).
 *
 * Source: draft-irtf-iccrg-sallantin-initial-spreading-00; docs/design/initial-spreading.md. Deviations from core: the kernel
 * paces nothing before the tenth data segment, so that segments 11 and later of the first window are spread and the first ten
 * leave at once; what follows the first acknowledgment is not spread.
 */
#ifndef FLEETFOOT_SPREAD_H
#define FLEETFOOT_SPREAD_H

#include "types.h"

#define SPREAD_BOUND_NS 4000000ull
#define SPREAD_LEAST_NS 4000000ull

/* Gap between segments of a first window of `segments`: a share of the round trip, at most 4 ms; 0: they are not spread, because
 * the share is below 4 ms (`spreading_jiffy`).
 */
INLINE u64 spread_gap_ns(u32 srtt_us8, u32 segments)
{
	u64 share = 125ull * srtt_us8 / (segments ? segments : 1);

	if (share < SPREAD_LEAST_NS)
		return 0;
	return share < SPREAD_BOUND_NS ? share : SPREAD_BOUND_NS;
}

#endif
