// Plays a schedule of arrivals through a queue in front of a line of fixed rate, and prints what became of each packet.
//
// SCHEDULE: first line "# queue=NAME key=value ...", then one line per arrival: time in ns, flow, length in bytes, 1 if the
// packet can carry a mark. RECORD: the first line again, then lines of a time in ns and events from that time on: the letter
// of the packet's flow, with "-" before it for a packet dropped and "+" for one that left with a mark, and a count if there
// are several in a row. Packets of one flow keep their order, so this says what became of each. At one instant the line ends
// sending first, then packets arrive, then the line takes the next packet.

#ifndef FLEETFOOT_PLAYER_H
#define FLEETFOOT_PLAYER_H

#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace player
{

const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

struct Arrival
{
    int64_t at;
    uint32_t flow;
    uint32_t len;
    bool capable;
};

struct Departure
{
    uint32_t flow;
    uint32_t len;
    bool marked;
};

class Record
{
  public:
    uint64_t left = 0;
    uint64_t marked = 0;
    uint64_t dropped = 0;

    void Left(const Departure& departure)
    {
        left++;
        marked += departure.marked;
        Tell(departure.marked ? "+" : "", departure.flow);
    }

    void Dropped(uint32_t flow)
    {
        dropped++;
        Tell("-", flow);
    }

    void Finish()
    {
        Flush();
        if (m_words % 100 != 0)
        {
            std::cout << '\n';
        }
    }

    int64_t now = 0;

  private:
    void Tell(const std::string& what, uint32_t flow)
    {
        std::string word = what + LETTERS[flow];
        if (word != m_word)
        {
            Flush();
            m_word = word;
            m_since = now;
        }
        m_count++;
    }

    void Flush()
    {
        if (m_count == 0)
        {
            return;
        }
        if (m_words % 100 == 0)
        {
            std::cout << m_since << ' ';
        }
        std::cout << m_word;
        if (m_count > 1)
        {
            std::cout << m_count;
        }
        if (++m_words % 100 == 0)
        {
            std::cout << '\n';
        }
        m_count = 0;
    }

    std::string m_word;
    uint64_t m_count = 0;
    uint64_t m_words = 0;
    int64_t m_since = 0;
};

struct Schedule
{
    std::string head;
    std::map<std::string, std::string> keys;
    std::vector<Arrival> arrivals;

    explicit Schedule(const char* path)
    {
        std::ifstream file(path);
        if (!std::getline(file, head) || head.rfind("# ", 0) != 0)
        {
            std::cerr << path << ": the first line must be: # queue=NAME key=value ...\n";
            std::exit(2);
        }
        std::istringstream words(head.substr(2));
        for (std::string word; words >> word;)
        {
            keys[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
        }
        for (Arrival arrival; file >> arrival.at >> arrival.flow >> arrival.len >> arrival.capable;)
        {
            arrivals.push_back(arrival);
        }
    }

    uint64_t Number(const std::string& key) const
    {
        return std::stoull(keys.at(key));
    }
};

// QUEUE has At(now), Enqueue(arrival) and Dequeue(), which gives a Departure or nothing, and tells RECORD what it drops.
template <class Queue>
int
Play(const Schedule& schedule, Queue& queue, Record& record)
{
    std::cout << schedule.head << '\n';
    uint64_t rate = schedule.Number("rate");
    size_t next = 0;
    int64_t done = -1;
    while (next < schedule.arrivals.size() || done >= 0)
    {
        int64_t now = done;
        if (next < schedule.arrivals.size() && (done < 0 || schedule.arrivals[next].at < done))
        {
            now = schedule.arrivals[next].at;
        }
        record.now = now;
        queue.At(now);
        if (done == now)
        {
            done = -1;
        }
        while (next < schedule.arrivals.size() && schedule.arrivals[next].at == now)
        {
            queue.Enqueue(schedule.arrivals[next++]);
        }
        if (done < 0)
        {
            if (std::optional<Departure> departure = queue.Dequeue())
            {
                record.Left(*departure);
                done = now + static_cast<int64_t>(departure->len * 8000000000ULL / rate);
            }
        }
    }
    record.Finish();
    std::cerr << schedule.arrivals.size() << " packets: " << record.left << " left, " << record.marked
              << " of them marked, " << record.dropped << " dropped\n";
    return record.left + record.dropped == schedule.arrivals.size() ? 0 : 1;
}

} // namespace player

#endif
