// What kernel.c offers: a queue discipline of Linux, without the rest of the kernel.

#ifndef FLEETFOOT_KERNEL_H
#define FLEETFOOT_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct sk_buff
{
    struct sk_buff *next;
    unsigned int len;
    unsigned int truesize;
    unsigned int priority;
    uint32_t flow;
    bool capable;
    bool marked;
    char cb[48];
};

struct settings
{
    uint32_t limit_packets, target_us, interval_us, mtu, quantum, batch;
    bool ecn, has_ce_threshold;
    uint32_t ce_threshold_us;
};

void kernel_init(const struct settings *settings, void (*dropped)(struct sk_buff *));
void kernel_at(uint64_t now_ns);
void kernel_enqueue(struct sk_buff *skb);
struct sk_buff *kernel_dequeue(void);

#endif
