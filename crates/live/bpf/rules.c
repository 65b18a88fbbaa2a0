/* The rules of the programs as functions of this machine, for tests/attach_rules.rs. */
#include "cdg.h"
#include "newcwv.h"
#include "spread.h"
#include "marks.h"

u64 ff_cdg_survival(u64 gradient_us)
{
	return cdg_survival(gradient_us);
}

u32 ff_cdg_size(void)
{
	return sizeof(struct cdg);
}

void ff_cdg_init(struct cdg *cdg, u32 cwnd)
{
	cdg_init(cdg, cwnd);
}

void ff_cdg_sample(struct cdg *cdg, const struct ack *ack)
{
	cdg_sample(cdg, ack);
}

void ff_cdg_recovered(struct cdg *cdg, const struct ack *ack)
{
	cdg_recovered(cdg, ack);
}

void ff_cdg_restart(struct cdg *cdg, u32 cwnd, u32 delivered)
{
	cdg_restart(cdg, cwnd, delivered);
}

void ff_cdg_timed_out(struct cdg *cdg)
{
	cdg_timed_out(cdg);
}

int ff_cdg_avoid(struct cdg *cdg, struct window *w, const struct ack *ack, u32 delivered_now, u32 random)
{
	return cdg_avoid(cdg, w, ack, delivered_now, random);
}

u32 ff_cdg_threshold(struct cdg *cdg, u32 cwnd)
{
	return cdg_threshold(cdg, cwnd);
}

u32 ff_newcwv_size(void)
{
	return sizeof(struct newcwv);
}

void ff_newcwv_init(struct newcwv *cwv, u32 nxt)
{
	newcwv_init(cwv, nxt);
}

/* The order of the program: the sample, then what CUBIC makes of the RTT. */
void ff_newcwv_acked(struct newcwv *cwv, struct window *w, const struct ack *ack, int recovering, int reducing)
{
	newcwv_acked(cwv, w, ack, recovering);
	cubic_acked(&cwv->cubic, w, ack, reducing);
}

void ff_newcwv_avoid(struct newcwv *cwv, struct window *w, const struct ack *ack, u32 delivered_now)
{
	newcwv_avoid(cwv, w, ack, delivered_now);
}

int ff_newcwv_before_sending(struct newcwv *cwv, struct window *w, u64 now_us, u32 srtt_us8, int full, u32 initial)
{
	return newcwv_before_sending(cwv, w, now_us, srtt_us8, full, initial);
}

u32 ff_newcwv_threshold(struct newcwv *cwv, const struct window *w, u64 now_us, u32 srtt_us8, int full, u32 flight,
			u32 retransmitted)
{
	return newcwv_threshold(cwv, w, now_us, srtt_us8, full, flight, retransmitted);
}

u32 ff_newcwv_recovered(struct newcwv *cwv, u32 retransmitted)
{
	return newcwv_recovered(cwv, retransmitted);
}

void ff_newcwv_undone(struct newcwv *cwv)
{
	newcwv_undone(cwv);
}

u32 ff_newcwv_timeout_threshold(struct newcwv *cwv)
{
	return newcwv_timeout_threshold(cwv);
}

void ff_newcwv_timed_out(struct newcwv *cwv)
{
	newcwv_timed_out(cwv);
}

void ff_newcwv_first_out(struct newcwv *cwv, u64 now_us, u64 idle_us)
{
	cubic_restart(&cwv->cubic, now_us, idle_us);
	cwv->fresh = 1;
}

u32 ff_newcwv_nonvalidated(const struct newcwv *cwv)
{
	return cwv->nonvalidated;
}

u64 ff_spread_gap_ns(u32 srtt_us8, u32 segments)
{
	return spread_gap_ns(srtt_us8, segments);
}

u32 ff_marker_size(void)
{
	return sizeof(struct marker);
}

/* High byte: the mark; low two bytes: the identifier. */
u32 ff_marker_next(struct marker *marker, u8 length, int fin, u32 random, u16 highest)
{
	u32 mark = marker_next(marker, length, fin, random, highest);

	return mark << 16 | marker->id;
}

int ff_marker_obstacle(u8 tos, int df, u8 dscp)
{
	return marker_obstacle(tos, df, dscp);
}

u32 ff_marker_write(u8 mark, u16 id, u8 tos, u8 dscp)
{
	struct marked marked = marker_write(mark, id, tos, dscp);

	return (u32)marked.tos << 16 | marked.ip_id;
}
