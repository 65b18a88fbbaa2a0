// The part of Linux that CoDel and FQ-CoDel need: clock, packets, lists, counters. Written for this purpose; the disciplines
// themselves are the kernel's own files, which queues.sh takes out of Debian's package linux-source-6.1 and puts beside this
// one: codel.h, codel_impl.h, codel_qdisc.h and discipline.c (sch_codel.c with -DCODEL, else sch_fq_codel.c).

#include "kernel.h"
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
#define __rcu
#define __maybe_unused __attribute__((unused))
#define likely(x) (x)
#define unlikely(x) (x)
#define fallthrough
#define typecheck(type, x) 1
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define do_div(n, base) ((n) /= (base))
#define rcu_dereference_bh(p) (p)
#define prefetch(x) ((void)0)
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_CN 2
#define __NET_XMIT_BYPASS 0x20000
#define __NET_XMIT_STOLEN 0x10000
#define TC_H_MAJ(h) ((h) & 0xFFFF0000U)
#define TC_H_MIN(h) ((h) & 0x0000FFFFU)
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

static u64 clock_ns;
static void (*tell_dropped)(struct sk_buff *);

static u64 ktime_get_ns(void)
{
    return clock_ns;
}

static u32 reciprocal_scale(u32 value, u32 below)
{
    return (u32)(((u64)value * below) >> 32);
}

struct list_head
{
    struct list_head *next, *prev;
};

static void INIT_LIST_HEAD(struct list_head *list)
{
    list->next = list->prev = list;
}

static __maybe_unused bool list_empty(const struct list_head *list)
{
    return list->next == list;
}

static __maybe_unused void list_del_init(struct list_head *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    INIT_LIST_HEAD(entry);
}

static __maybe_unused void list_add_tail(struct list_head *entry, struct list_head *list)
{
    entry->prev = list->prev;
    entry->next = list;
    list->prev->next = entry;
    list->prev = entry;
}

static __maybe_unused void list_move_tail(struct list_head *entry, struct list_head *list)
{
    list_del_init(entry);
    list_add_tail(entry, list);
}

#define list_first_entry(list, type, member) container_of((list)->next, type, member)

struct tcf_proto;
struct tcf_block;
struct tcf_result
{
    u32 classid;
};

struct qdisc_skb_head
{
    struct sk_buff *head, *tail;
    u32 qlen;
};

struct Qdisc
{
    u32 handle, limit;
    struct qdisc_skb_head q;
    struct
    {
        u32 backlog, drops;
    } qstats;
    void *data;
};

struct qdisc_skb_cb
{
    char data[40];
};

static void *qdisc_priv(struct Qdisc *sch)
{
    return sch->data;
}

static u32 qdisc_pkt_len(const struct sk_buff *skb)
{
    return skb->len;
}

static struct qdisc_skb_cb *qdisc_skb_cb(const struct sk_buff *skb)
{
    return (struct qdisc_skb_cb *)skb->cb;
}

#define qdisc_cb_private_validate(skb, size) ((void)0)
#define qdisc_bstats_update(sch, skb) ((void)0)
#define qdisc_tree_reduce_backlog(sch, packets, bytes) ((void)(bytes))
#define qdisc_qstats_drop(sch) ((sch)->qstats.drops++)
#define qdisc_qstats_backlog_inc(sch, skb) ((sch)->qstats.backlog += (skb)->len)
#define qdisc_qlen(sch) ((sch)->q.qlen)
#define skb_mark_not_on_list(skb) ((skb)->next = NULL)
#define tcf_classify_qdisc(skb, filter, result, compat) (-1)

static __maybe_unused u32 skb_get_hash(struct sk_buff *skb)
{
    return skb->flow << 22; // of 1024 queues the one with the flow's number
}

static __maybe_unused int skb_get_dsfield(struct sk_buff *skb)
{
    return skb->marked ? 3 : skb->capable ? 2 : 0;
}

static int INET_ECN_set_ce(struct sk_buff *skb)
{
    skb->marked |= skb->capable;
    return skb->capable;
}

static void kfree_skb(struct sk_buff *skb)
{
    tell_dropped(skb);
}

static __maybe_unused void __qdisc_drop(struct sk_buff *skb, struct sk_buff **to_free)
{
    (void)to_free;
    kfree_skb(skb);
}

static __maybe_unused int qdisc_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
    qdisc_qstats_drop(sch);
    __qdisc_drop(skb, to_free);
    return NET_XMIT_DROP;
}

static __maybe_unused int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch)
{
    skb->next = NULL;
    if (sch->q.head)
        sch->q.tail->next = skb;
    else
        sch->q.head = skb;
    sch->q.tail = skb;
    sch->q.qlen++;
    qdisc_qstats_backlog_inc(sch, skb);
    return NET_XMIT_SUCCESS;
}

static __maybe_unused struct sk_buff *__qdisc_dequeue_head(struct qdisc_skb_head *queue)
{
    struct sk_buff *skb = queue->head;
    if (skb)
    {
        queue->head = skb->next;
        queue->qlen--;
        skb->next = NULL;
    }
    return skb;
}

#include "codel.h"
#include "codel_impl.h"
#include "codel_qdisc.h"
#include "discipline.c"

static struct Qdisc discipline;

static void parameters(struct codel_params *params, const struct settings *settings)
{
    codel_params_init(params);
    // As the discipline's own *_change takes them from tc.
    params->target = ((u64)settings->target_us * NSEC_PER_USEC) >> CODEL_SHIFT;
    params->interval = ((u64)settings->interval_us * NSEC_PER_USEC) >> CODEL_SHIFT;
    if (settings->has_ce_threshold)
        params->ce_threshold = ((u64)settings->ce_threshold_us * NSEC_PER_USEC) >> CODEL_SHIFT;
    params->ecn = settings->ecn;
    params->mtu = settings->mtu;
}

void kernel_init(const struct settings *settings, void (*dropped)(struct sk_buff *))
{
    tell_dropped = dropped;
    discipline.limit = settings->limit_packets;
    discipline.handle = 1 << 16;
#ifdef CODEL
    struct codel_sched_data *q = calloc(1, sizeof(*q));
    parameters(&q->params, settings);
    codel_vars_init(&q->vars);
    codel_stats_init(&q->stats);
#else
    struct fq_codel_sched_data *q = calloc(1, sizeof(*q));
    q->flows_cnt = 1024;
    q->flows = calloc(q->flows_cnt, sizeof(*q->flows));
    q->backlogs = calloc(q->flows_cnt, sizeof(*q->backlogs));
    q->quantum = settings->quantum;
    q->drop_batch_size = settings->batch;
    q->memory_limit = 32 << 20;
    parameters(&q->cparams, settings);
    codel_stats_init(&q->cstats);
    INIT_LIST_HEAD(&q->new_flows);
    INIT_LIST_HEAD(&q->old_flows);
    for (u32 i = 0; i < q->flows_cnt; i++)
    {
        INIT_LIST_HEAD(&q->flows[i].flowchain);
        codel_vars_init(&q->flows[i].cvars);
    }
#endif
    discipline.data = q;
}

void kernel_at(uint64_t now_ns)
{
    clock_ns = now_ns;
}

void kernel_enqueue(struct sk_buff *skb)
{
    struct sk_buff *to_free = NULL;
#ifdef CODEL
    codel_qdisc_enqueue(skb, &discipline, &to_free);
#else
    fq_codel_enqueue(skb, &discipline, &to_free);
#endif
}

struct sk_buff *kernel_dequeue(void)
{
#ifdef CODEL
    return codel_qdisc_dequeue(&discipline);
#else
    return fq_codel_dequeue(&discipline);
#endif
}
