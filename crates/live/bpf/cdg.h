/* CAIA Delay-Gradient: the rules of `crates/core/src/cc/cdg.rs` with its defaults, in segments and integers.
 *
 * Source: Hayes and Armitage, Networking 2011, with the defaults of Linux's tcp_cdg; docs/design/delay-gradient.md.
 * Deviations from core: exp(-x) comes from shifts and a table of sixteen factors instead of libm (equal to 5 parts in 2^32); a
 * back-off lowers the window at once and lets it rest until what was in flight has arrived, because a program in BPF cannot put
 * the kernel into CWR. tests/attach_rules.rs compares both ACK by ACK.
 */
#ifndef FLEETFOOT_CDG_H
#define FLEETFOOT_CDG_H

#include "types.h"

#define CDG_ROUNDS 8
#define CDG_BETA 724u /* of 1024 */
#define CDG_FACTOR 42u /* 1000 / (3 ms x 8 rounds) */
#define CDG_INEFFECTIVE 5u
#define CDG_FALL_US 32
#define CDG_TRAIN_GAP_US 3000u
#define CDG_LEAST_US 125u
#define CDG_SAMPLES 8u
#define CDG_MOST_DELAYED 5u

/* Microseconds; 0: none. */
struct cdg_delays {
	u32 min;
	u32 max;
};

struct cdg_gradient {
	s32 min;
	s32 max;
};

/* 104 bytes: what the kernel keeps for a congestion control. */
struct cdg {
	/* Of this round and of the one before. */
	struct cdg_delays rtt, previous;
	struct cdg_gradient gradients[CDG_ROUNDS];
	/* What NewReno would have. */
	u32 shadow;
	/* The round, or the rest after a back-off, is over when more than this was delivered. */
	u32 round_end;
	/* Smallest RTT of the connection, microseconds. */
	u32 delay_min;
	u32 last_ack, train;
	/* ACKs looked at in this round, suspected delayed ACKs to come, gradients that are known. */
	u32 samples : 4, delayed : 3, seen : 4;
	/* `last_ack` is set; after a back-off. */
	u32 train_began : 1, resting : 1;
	/* Since the gradient last fell. */
	u32 backoffs : 8;
};

/* exp(-x) in 1/2^32, x = gradient x factor / 10^6: as a power of two by whole binary places and their fractions. */
INLINE u64 cdg_survival(u64 gradient_us)
{
	/* 2^-(2^-n) in 1/2^32, n = 1 .. 16. */
	static const u32 factors[16] = {
		3037000500u, 3611622603u, 3938502376u, 4112874773u, 4202935003u, 4248701965u, 4271771996u, 4283353945u,
		4289156690u, 4292061010u, 4293513907u, 4294240540u, 4294603903u, 4294785595u, 4294876445u, 4294921870u,
	};
	u64 exponent, left;
	u32 fraction;
	u64 value = 1ull << 32;
	int place;

	if (gradient_us > 1000000)
		return 0; /* exp(-42) */
	/* log2(e) / 10^6 x 2^52 = 6497320848.6 */
	exponent = gradient_us * CDG_FACTOR * 6497320849ull >> 20;
	fraction = (u32)exponent;
	for (place = 0; place < 16; place++) {
		if (fraction & (0x80000000u >> place))
			value = (value * factors[place] + 0x80000000u) >> 32;
	}
	/* What is below 2^-16: 1 - y ln 2. */
	left = (u64)(fraction & 0xffff) * 2977044472ull >> 32;
	value -= value * left >> 32;
	return exponent >> 32 > 32 ? 0 : value >> (exponent >> 32);
}

/* Whether a draw of 32 random bits backs off. */
INLINE int cdg_chance(u64 gradient_us, u32 random)
{
	return random < (1ull << 32) - cdg_survival(gradient_us);
}

INLINE void cdg_begin_round(struct cdg *cdg, const struct ack *ack)
{
	cdg->round_end = ack->delivered + ack->in_flight;
	cdg->previous = cdg->rtt;
	cdg->rtt.min = cdg->rtt.max = 0;
}

/* The connection begins; the handshake's RTT, if it is there, stays. */
INLINE void cdg_init(struct cdg *cdg, u32 cwnd)
{
	cdg->shadow = cwnd;
	cdg->round_end = 0;
}

/* The delay that an acknowledgment shows (`Delays::take`). */
INLINE void cdg_sample(struct cdg *cdg, const struct ack *ack)
{
	u32 rtt = ack->rtt_us;

	if (ack->rtt_us <= 0)
		return;
	if (!ack->sacked) {
		if (ack->acked == 1 && cdg->delayed) {
			if (cdg->rtt.min)
				cdg->rtt.min = least(cdg->rtt.min, rtt);
			cdg->delayed--;
			return;
		}
		if (ack->acked > 1 && cdg->delayed < CDG_MOST_DELAYED)
			cdg->delayed++;
	}
	cdg->rtt.min = cdg->rtt.min ? least(cdg->rtt.min, rtt) : rtt;
	cdg->rtt.max = most(cdg->rtt.max, rtt);
}

/* A recovery, or an answer to a mark, is over. Its own delays are what the next round is held against. */
INLINE void cdg_recovered(struct cdg *cdg, const struct ack *ack)
{
	cdg->resting = 0;
	cdg_begin_round(cdg, ack);
}

/* Data leaves after a pause: what was learnt is forgotten. */
INLINE void cdg_restart(struct cdg *cdg, u32 cwnd, u32 delivered)
{
	int at;

	cdg->rtt.min = cdg->rtt.max = cdg->previous.min = cdg->previous.max = 0;
#pragma unroll
	for (at = 0; at < CDG_ROUNDS; at++)
		cdg->gradients[at].min = cdg->gradients[at].max = 0;
	cdg->shadow = cwnd;
	cdg->round_end = delivered - 1;
	cdg->delay_min = cdg->last_ack = cdg->train = 0;
	cdg->samples = cdg->delayed = cdg->seen = 0;
	cdg->train_began = cdg->resting = 0;
	cdg->backoffs = 0;
}

/* A timeout ends the rest after a back-off. */
INLINE void cdg_timed_out(struct cdg *cdg)
{
	cdg->resting = 0;
}

/* HyStart's two tests with a clock of microseconds. */
INLINE int cdg_ends_slow_start(struct cdg *cdg, const struct ack *ack, int limited)
{
	u32 now = (u32)ack->now_us, round_min = cdg->rtt.min;

	if (!cdg->delay_min)
		cdg->delay_min = round_min;
	else if (round_min)
		cdg->delay_min = least(cdg->delay_min, round_min);
	if (!cdg->delay_min)
		return 0;
	if (!cdg->train_began || !limited) {
		cdg->last_ack = cdg->train = now;
		cdg->train_began = 1;
	} else if (now - cdg->last_ack < CDG_TRAIN_GAP_US) {
		cdg->last_ack = now;
		if (now - cdg->train > most(cdg->delay_min / 2, CDG_LEAST_US))
			return 1;
	}
	if (cdg->samples < CDG_SAMPLES) {
		cdg->samples++;
		return 0;
	}
	return round_min > most(cdg->delay_min + cdg->delay_min / 8, CDG_LEAST_US);
}

/* A round's differences take the place of the oldest. The sum that counts, extended to eight rounds; 0: none that is positive. */
INLINE u64 cdg_gradient_of(struct cdg *cdg)
{
	s64 min = 0, max = 0, value;
	int at;

	/* A ring would need an index, which the verifier refuses in the private state. */
#pragma unroll
	for (at = CDG_ROUNDS - 1; at > 0; at--)
		cdg->gradients[at] = cdg->gradients[at - 1];
	cdg->gradients[0].min = cdg->rtt.min - cdg->previous.min;
	cdg->gradients[0].max = cdg->rtt.max - cdg->previous.max;
	if (cdg->seen < CDG_ROUNDS)
		cdg->seen++;
#pragma unroll
	for (at = 0; at < CDG_ROUNDS; at++) {
		min += cdg->gradients[at].min;
		max += cdg->gradients[at].max;
	}
	if (min <= -CDG_FALL_US || max <= -CDG_FALL_US)
		cdg->backoffs = 0; /* the last one had an effect */
	value = min > 0 ? min : max;
	if (value <= 0)
		return 0;
	return (u64)value * CDG_ROUNDS / cdg->seen;
}

/* What an acknowledgment did. */
#define CDG_DREW 1
#define CDG_BACKED_OFF 2

/* An acknowledgment of `delivered_now` segments outside of the kernel's own reductions. `random`: 32 random bits, which it may use. */
INLINE int cdg_avoid(struct cdg *cdg, struct window *w, const struct ack *ack, u32 delivered_now, u32 random)
{
	int limited = in_use(w, ack);
	u32 before = w->cwnd;
	int did = 0;

	if (cdg->resting) {
		if (!later(ack->delivered, cdg->round_end))
			return 0;
		cdg_recovered(cdg, ack);
	}
	if (w->cwnd < w->ssthresh && cdg_ends_slow_start(cdg, ack, limited))
		w->ssthresh = w->cwnd;
	if (cdg->rtt.min && later(ack->delivered, cdg->round_end)) {
		u64 gradient = cdg->previous.min ? cdg_gradient_of(cdg) : 0;

		cdg_begin_round(cdg, ack);
		cdg->train_began = 0;
		cdg->samples = 0;
		if (gradient)
			did = CDG_DREW;
		if (gradient && cdg_chance(gradient, random)) {
			if (cdg->backoffs < 255)
				cdg->backoffs++;
			if (cdg->backoffs <= CDG_INEFFECTIVE) {
				cdg->shadow = most(cdg->shadow, w->cwnd);
				w->ssthresh = most((u32)((u64)w->cwnd * CDG_BETA >> 10), 2);
				w->cwnd = least(w->cwnd, w->ssthresh);
				w->count = 0;
				cdg->resting = 1;
				return CDG_DREW | CDG_BACKED_OFF;
			}
		}
	}
	if (!limited) {
		cdg->shadow = least(cdg->shadow, w->cwnd);
		return did;
	}
	if (w->cwnd < w->ssthresh)
		delivered_now = slow_start(w, delivered_now);
	if (delivered_now)
		avoid(w, w->cwnd, delivered_now);
	cdg->shadow += w->cwnd - before;
	return did;
}

/* The threshold after a loss or a mark. */
INLINE u32 cdg_threshold(struct cdg *cdg, u32 cwnd)
{
	cdg->shadow = least(cdg->shadow / 2, cwnd);
	return most(most(cwnd / 2, cdg->shadow), 2);
}

#endif
