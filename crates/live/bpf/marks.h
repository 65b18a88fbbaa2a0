/* Marks of super-packets without holding: `Mode::Fixed` of `crates/core/src/superpacket/group.rs`, layouts A and B.
 *
 * The first packet of a group announces `length` packets, and the next ones of its flow are the followers whenever they come.
 * Source: Schinazi, UCB/EECS-2014-80, 3.1 and 3.2; docs/design/super-packets.md. Deviations from core: none. tests/attach_rules.rs
 * compares both packet by packet.
 */
#ifndef FLEETFOOT_MARKS_H
#define FLEETFOOT_MARKS_H

#include "types.h"

#define MARK_FIRST 0x80
#define MARK_LAST 0x40
#define MARKS_RECENT 8

/* Of one flow. */
struct marker {
	/* Identifiers of the last groups, newest first. */
	u16 recent[MARKS_RECENT];
	u16 id;
	/* Groups so far, up to MARKS_RECENT; followers still to come. */
	u8 groups;
	u8 followers;
};

/* Type of service and identification of IPv4. */
struct marked {
	u8 tos;
	u16 ip_id;
};

INLINE int marker_is_recent(const struct marker *marker, u16 id)
{
	int at, found = 0;

#pragma unroll
	for (at = 0; at < MARKS_RECENT; at++)
		found |= at < marker->groups && marker->recent[at] == id;
	return found;
}

/* An identifier that cannot be guessed and does not come again soon. */
INLINE u16 marker_draw(struct marker *marker, u32 random, u16 highest)
{
	u16 id = (u16)random & highest;
	int at;

	/* At most eight are taken. */
	for (at = 0; at < MARKS_RECENT; at++) {
		if (!marker_is_recent(marker, id))
			break;
		id = (id + 1) & highest;
	}
#pragma unroll
	for (at = MARKS_RECENT - 1; at > 0; at--)
		marker->recent[at] = marker->recent[at - 1];
	marker->recent[0] = id;
	if (marker->groups < MARKS_RECENT)
		marker->groups++;
	return id;
}

/* A packet with data or FIN: its mark as flags and length, 0 if it is regular; the identifier is `marker->id`. */
INLINE u8 marker_next(struct marker *marker, u8 length, int fin, u32 random, u16 highest)
{
	u8 mark = length;

	if (length < 2 || (!marker->followers && fin))
		return 0;
	if (!marker->followers) {
		marker->id = marker_draw(marker, random, highest);
		marker->followers = length;
		mark |= MARK_FIRST;
	}
	marker->followers--;
	if (fin && marker->followers) {
		mark |= MARK_LAST;
		marker->followers = 0;
	}
	return mark;
}

/* What keeps a packet from being marked: `obstacle` of `crates/core/src/superpacket/marker.rs`. */
#define MARK_FREE 0
#define MARK_CLASS 1
#define MARK_FRAGMENTABLE 2

/* A mark overwrites nothing that means something to others: not the DSCP or, in layout A, which takes the whole type of service, the ECN
 * field, and not the identification of a packet that may be fragmented (RFC 6864 4.1). `dscp` as below.
 */
INLINE int marker_obstacle(u8 tos, int df, u8 dscp)
{
	if (dscp ? tos >> 2 : tos)
		return MARK_CLASS;
	return df ? MARK_FREE : MARK_FRAGMENTABLE;
}

/* Layout A takes the whole type of service, layout B a codepoint and the identification; `dscp` 0 stands for A. */
INLINE struct marked marker_write(u8 mark, u16 id, u8 tos, u8 dscp)
{
	struct marked marked;

	if (dscp) {
		marked.tos = dscp << 2 | (tos & 3);
		marked.ip_id = (u16)mark << 8 | (id & 0xff);
	} else {
		marked.tos = mark;
		marked.ip_id = id & 0xfff;
	}
	return marked;
}

#endif
