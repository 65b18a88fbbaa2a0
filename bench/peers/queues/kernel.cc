// Plays a schedule of arrivals (player.h) through a queue discipline of Linux (kernel.c).
//
//     codel SCHEDULE > RECORD
//     fq_codel SCHEDULE > RECORD

#include "player.h"

extern "C"
{
#include "kernel.h"
}

#include <cstring>

namespace
{

player::Record record;

void
Dropped(sk_buff* skb)
{
    record.Dropped(skb->flow);
    delete skb;
}

struct Queue
{
    void At(int64_t now)
    {
        // The kernel takes time 0 for "not set": start a second later.
        kernel_at(static_cast<uint64_t>(now) + (1000000000 / 1024 + 1) * 1024);
    }

    void Enqueue(const player::Arrival& arrival)
    {
        sk_buff* skb = new sk_buff;
        std::memset(skb, 0, sizeof(*skb));
        skb->len = arrival.len;
        skb->truesize = arrival.len + 768; // what a driver might take; memory is not what limits here
        skb->flow = arrival.flow;
        skb->capable = arrival.capable;
        kernel_enqueue(skb);
    }

    std::optional<player::Departure> Dequeue()
    {
        sk_buff* skb = kernel_dequeue();
        if (skb == nullptr)
        {
            return {};
        }
        player::Departure departure{skb->flow, skb->len, skb->marked};
        delete skb;
        return departure;
    }
};

} // namespace

int
main(int argc, char** argv)
{
    player::Schedule schedule(argc > 1 ? argv[1] : "/dev/stdin");
    auto number = [&](const char* key) { return static_cast<uint32_t>(schedule.Number(key)); };
    settings settings{};
    settings.limit_packets = number("limit_packets");
    settings.target_us = number("target_us");
    settings.interval_us = number("interval_us");
    settings.mtu = number("mtu");
    settings.quantum = number("quantum");
    settings.batch = number("batch");
    settings.ecn = number("ecn") == 1;
    settings.has_ce_threshold = schedule.keys.count("ce_threshold_us") > 0;
    settings.ce_threshold_us = settings.has_ce_threshold ? number("ce_threshold_us") : 0;
    kernel_init(&settings, Dropped);
    Queue queue;
    return player::Play(schedule, queue, record);
}
