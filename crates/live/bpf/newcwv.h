/* New-CWV over CUBIC: the rules of `crates/core/src/tcp/window/new_cwv.rs`, in segments.
 *
 * Source: RFC 7661; docs/design/window-validation.md. Deviations from core: R counts every retransmission of an episode, also the
 * second one of the same segment, because the kernel keeps no other count; in the non-validated phase the kernel's own pacing runs
 * (1.2 windows per SRTT, no ten segments at once); five minutes are looked at when an ACK arrives and when a pause ends.
 * tests/attach_rules.rs compares both ACK by ACK.
 */
#ifndef FLEETFOOT_NEWCWV_H
#define FLEETFOOT_NEWCWV_H

#include "cubic.h"

#define NEWCWV_BINS 5
#define NEWCWV_PERIOD_US 1000000ull /* at least */
#define NEWCWV_NONVALIDATED_US 300000000ull /* RFC 7661 4.4.2: NVP */

struct newcwv_bin {
	u64 at_us;
	u32 sample;
	u32 pad;
};

struct newcwv {
	struct cubic cubic;
	/* Largest sample of each bin with its begin, newest first. */
	struct newcwv_bin bins[NEWCWV_BINS];
	u64 since_us, acked_at_us;
	/* Until when the window has aged while pipeACK was undefined. */
	u64 aged_us;
	u32 used;
	/* pipeACK is defined; the next ACK begins a round trip; not validated, since `since_us`. */
	u32 defined, fresh, nonvalidated;
	/* Acknowledged so far, and when this sample's round trip began; it ends when `prior_nxt` is acknowledged. */
	u32 acked, prior_acked, prior_nxt;
	/* An answer to a loss in the non-validated phase: max(pipeACK, LossFlightSize), retransmissions before it, the window before it. */
	u32 episode, episode_used, episode_retransmitted, episode_window;
	/* What a pause must not change (the program in the kernel); 0: nothing is kept. */
	u32 kept_window, kept_ssthresh;
	/* The last threshold was New-CWV's answer. */
	u32 answered;
	/* The program switched pacing on. */
	u32 paced;
};

INLINE void newcwv_init(struct newcwv *cwv, u32 nxt)
{
	*cwv = (struct newcwv){ .fresh = 1, .cubic = { .round_end = nxt } };
}

INLINE u64 newcwv_period(u32 srtt_us8)
{
	u64 three = 3ull * srtt_us8 >> 3;

	return three > NEWCWV_PERIOD_US ? three : NEWCWV_PERIOD_US;
}

/* pipeACK; only where it is defined. */
INLINE u32 newcwv_pipe_ack(const struct newcwv *cwv, u64 now_us, u64 period_us)
{
	u32 pipe = 0;
	int at;

	for (at = 0; at < NEWCWV_BINS; at++) {
		if ((u32)at < cwv->used && now_us - cwv->bins[at].at_us < period_us)
			pipe = most(pipe, cwv->bins[at].sample);
	}
	return pipe;
}

INLINE void newcwv_take(struct newcwv *cwv, u64 now_us, u64 period_us, u32 sample)
{
	int at;

	cwv->defined = 1;
	if (cwv->used && (now_us - cwv->bins[0].at_us) * NEWCWV_BINS < period_us) {
		cwv->bins[0].sample = most(cwv->bins[0].sample, sample);
		return;
	}
	for (at = NEWCWV_BINS - 1; at > 0; at--)
		cwv->bins[at] = cwv->bins[at - 1];
	cwv->bins[0].at_us = now_us;
	cwv->bins[0].sample = sample;
	if (cwv->used < NEWCWV_BINS)
		cwv->used++;
}

/* After a recovery or a timeout pipeACK is undefined, and the window validated (RFC 7661 4.2). */
INLINE void newcwv_forget(struct newcwv *cwv)
{
	cwv->used = cwv->defined = cwv->nonvalidated = 0;
	cwv->fresh = 1;
}

/* RFC 7661 4.3. */
INLINE void newcwv_judge(struct newcwv *cwv, u64 now_us, u64 period_us, u32 window, int full)
{
	u64 used_until = cwv->acked_at_us + (full ? period_us : 0);
	u32 pipe = newcwv_pipe_ack(cwv, now_us, period_us);
	int at;

	if (!cwv->defined || 2 * pipe > window) {
		cwv->nonvalidated = 0;
	} else if (2 * pipe < window && !cwv->nonvalidated && used_until <= now_us) {
		/* It fell when the last sample expired that was large enough, and the window was no longer in use. */
		u64 since = used_until;

		for (at = 0; at < NEWCWV_BINS; at++) {
			if ((u32)at < cwv->used && 2 * cwv->bins[at].sample >= window &&
			    cwv->bins[at].at_us + period_us > since)
				since = cwv->bins[at].at_us + period_us;
		}
		cwv->nonvalidated = 1;
		cwv->since_us = since < now_us ? since : now_us;
	}
}

/* An acknowledgment: a sample, if it ends a round trip outside of a `recovering` from a loss. */
INLINE void newcwv_acked(struct newcwv *cwv, const struct window *w, const struct ack *ack, int recovering)
{
	u64 period_us = newcwv_period(ack->srtt_us8);
	u32 before = cwv->acked;

	if (!ack->acked)
		return;
	cwv->acked_at_us = ack->now_us;
	cwv->acked += ack->acked;
	if (recovering)
		return;
	if (cwv->fresh) {
		cwv->fresh = 0;
		cwv->prior_acked = before;
		cwv->prior_nxt = ack->nxt;
	}
	if (!later(cwv->prior_nxt, ack->una)) {
		u32 sample = cwv->acked - cwv->prior_acked;

		cwv->prior_acked = cwv->acked;
		cwv->prior_nxt = ack->nxt;
		newcwv_take(cwv, ack->now_us, period_us, sample);
	}
	newcwv_judge(cwv, ack->now_us, period_us, w->cwnd, ack->full);
}

/* Before data leaves: the phase, and what five minutes of it make of the window (RFC 7661 4.4.2). True if they change it. */
INLINE int newcwv_before_sending(struct newcwv *cwv, struct window *w, u64 now_us, u32 srtt_us8, int full, u32 initial)
{
	u32 reduced = w->cwnd, ssthresh = w->ssthresh;
	u64 period_us = newcwv_period(srtt_us8), since, periods;
	int at;

	newcwv_judge(cwv, now_us, period_us, w->cwnd, full);
	if (cwv->nonvalidated) {
		since = cwv->since_us;
	} else if (!cwv->defined && cwv->acked) {
		since = cwv->acked_at_us + period_us;
		if (cwv->aged_us > since)
			since = cwv->aged_us;
	} else {
		return 0;
	}
	if (now_us < since + NEWCWV_NONVALIDATED_US)
		return 0;
	periods = (now_us - since) / NEWCWV_NONVALIDATED_US;
	since += periods * NEWCWV_NONVALIDATED_US;
	if (cwv->nonvalidated)
		cwv->since_us = since;
	else
		cwv->aged_us = since;
	/* After 32 halvings nothing is left to halve. */
	for (at = 0; at < 32; at++) {
		if ((u64)at >= periods)
			break;
		ssthresh = most(ssthresh, (u32)(3ull * reduced / 4));
		reduced = most(reduced / 2, least(initial, reduced));
	}
	if (reduced == w->cwnd && ssthresh == w->ssthresh)
		return 0;
	w->cwnd = reduced;
	w->ssthresh = ssthresh;
	w->count = 0;
	cubic_overridden(&cwv->cubic);
	return 1;
}

/* The threshold after a loss or a mark with `flight` segments outstanding: in the non-validated phase half of what was used
 * (RFC 7661 4.4.1), else CUBIC's.
 */
INLINE u32 newcwv_threshold(struct newcwv *cwv, const struct window *w, u64 now_us, u32 srtt_us8, int full, u32 flight,
			    u32 retransmitted)
{
	u64 period_us = newcwv_period(srtt_us8);
	u32 used;

	newcwv_judge(cwv, now_us, period_us, w->cwnd, full);
	cwv->answered = cwv->nonvalidated;
	if (!cwv->nonvalidated)
		return cubic_threshold(&cwv->cubic, w->cwnd);
	used = most(newcwv_pipe_ack(cwv, now_us, period_us), flight);
	cwv->episode = 1;
	cwv->episode_used = used;
	cwv->episode_retransmitted = retransmitted;
	cwv->episode_window = w->cwnd;
	cubic_overridden(&cwv->cubic);
	return most(used / 2, 1);
}

/* Recovery, or the answer to a mark, is over: the window that is left, if the answer was New-CWV's; else 0. */
INLINE u32 newcwv_recovered(struct newcwv *cwv, u32 retransmitted)
{
	u32 lost = retransmitted - cwv->episode_retransmitted;
	int episode = cwv->episode;

	cwv->episode = 0;
	newcwv_forget(cwv);
	if (!episode)
		return 0;
	cubic_overridden(&cwv->cubic);
	return most((cwv->episode_used - least(lost, cwv->episode_used)) / 2, 1);
}

/* The reduction was a mistake: the window to return to is the kernel's business. */
INLINE void newcwv_undone(struct newcwv *cwv)
{
	if (cwv->episode)
		cubic_overridden(&cwv->cubic);
	cwv->episode = 0;
}

/* A timeout was answered as a loss in the non-validated phase: the standard threshold after all; else 0. */
INLINE u32 newcwv_timeout_threshold(struct newcwv *cwv)
{
	u32 threshold = cwv->answered ? cubic_threshold(&cwv->cubic, cwv->episode_window) : 0;

	cwv->episode = 0;
	newcwv_forget(cwv);
	return threshold;
}

/* A timeout: the standard answer, and nothing is known any more. */
INLINE void newcwv_timed_out(struct newcwv *cwv)
{
	cwv->episode = 0;
	newcwv_forget(cwv);
	cubic_timed_out(&cwv->cubic);
}

/* An acknowledgment of `delivered_now` segments may let the window grow. */
INLINE void newcwv_avoid(struct newcwv *cwv, struct window *w, const struct ack *ack, u32 delivered_now)
{
	/* RFC 7661 4.3: not validated, it grows only while it is full. */
	if (cwv->nonvalidated ? ack->full : in_use(w, ack))
		cubic_grow(&cwv->cubic, w, ack->now_us, delivered_now);
}

#endif
