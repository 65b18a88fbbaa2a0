// Plays a schedule of arrivals (player.h) through a queue discipline of ns-3.
//
//     queues SCHEDULE > RECORD

#include "../queues/player.h"

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

class Item : public QueueDiscItem
{
  public:
    explicit Item(const player::Arrival& arrival)
        : QueueDiscItem(Create<Packet>(arrival.len), Address(), 0),
          arrival(arrival)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        marked = marked || arrival.capable;
        return arrival.capable;
    }

    // A queue for each flow, as long as there are more queues than flows.
    uint32_t Hash(uint32_t) const override
    {
        return arrival.flow;
    }

    player::Arrival arrival;
    bool marked = false;
};

class Disc
{
  public:
    Disc(Ptr<QueueDisc> queue, player::Record& record)
        : m_queue(queue),
          m_record(record)
    {
        m_queue->TraceConnectWithoutContext("Drop", MakeCallback(&Disc::Dropped, this));
    }

    void At(int64_t now)
    {
        Simulator::Stop(NanoSeconds(now) - Simulator::Now());
        Simulator::Run();
    }

    void Enqueue(const player::Arrival& arrival)
    {
        m_queue->Enqueue(Create<Item>(arrival));
    }

    std::optional<player::Departure> Dequeue()
    {
        Ptr<Item> item = DynamicCast<Item>(m_queue->Dequeue());
        if (!item)
        {
            return {};
        }
        return player::Departure{item->arrival.flow, item->arrival.len, item->marked};
    }

  private:
    void Dropped(Ptr<const QueueDiscItem> item)
    {
        m_record.Dropped(DynamicCast<const Item>(item)->arrival.flow);
    }

    Ptr<QueueDisc> m_queue;
    player::Record& m_record;
};

} // namespace

int
main(int argc, char** argv)
{
    player::Schedule schedule(argc > 1 ? argv[1] : "/dev/stdin");
    auto us = [&](const char* key) { return schedule.keys.at(key) + "us"; };
    bool threshold = schedule.keys.count("ce_threshold_us") > 0;
    // RFC 8289's "at most one packet" is "fewer bytes than" here.
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(schedule.Number("mtu") + 1));
    bool fair = schedule.keys["queue"] == "fq-codel";
    ObjectFactory factory(fair ? "ns3::FqCoDelQueueDisc" : "ns3::CoDelQueueDisc");
    factory.Set("Target", StringValue(us("target_us")));
    factory.Set("Interval", StringValue(us("interval_us")));
    factory.Set("CeThreshold", TimeValue(threshold ? Time(us("ce_threshold_us")) : Time::Max()));
    factory.Set("UseEcn", BooleanValue(schedule.Number("ecn") == 1));
    factory.Set("MaxSize", QueueSizeValue(QueueSize(schedule.keys["limit_packets"] + "p")));
    if (fair)
    {
        factory.Set("DropBatchSize", UintegerValue(schedule.Number("batch")));
    }
    Ptr<QueueDisc> disc = factory.Create<QueueDisc>();
    if (fair)
    {
        DynamicCast<FqCoDelQueueDisc>(disc)->SetQuantum(schedule.Number("quantum"));
    }
    disc->Initialize();
    player::Record record;
    Disc queue(disc, record);
    int status = player::Play(schedule, queue, record);
    Simulator::Destroy();
    return status;
}
