/*
 * flow_simgrid FILE - the ends of the flows of FILE by SimGrid, as `flow` of flow.c finds
 * them. Only `link` and `flow` lines, without weights. The model is CM02 without its
 * factors, and without latency: what is left of it is max-min fair sharing.
 */
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct flow {
    std::string name;
    double start, bytes;
    sg4::Host *from, *to;
};
static std::vector<flow> flows;

static sg4::Host *
host(sg4::NetZone *zone, const std::string &name)
{
    sg4::Host *found = sg4::Host::by_name_or_null(name);
    return found ? found : zone->create_host(name, 1e9);
}

/* Starts each flow at its time, and writes when it has ended. */
static void
start_all()
{
    std::vector<sg4::CommPtr> comms;
    for (size_t i = 0; i < flows.size(); i++) {
        const flow &f = flows[i];
        sg4::this_actor::sleep_until(f.start);
        sg4::CommPtr comm = sg4::Comm::sendto_init(f.from, f.to);
        comm->set_payload_size(static_cast<uint64_t>(f.bytes));
        comm->start();
        comms.push_back(comm);
    }
    for (size_t i = 0; i < flows.size(); i++) {
        comms[i]->wait();
        std::printf("%s\t%.17g\n", flows[i].name.c_str(), comms[i]->get_finish_time());
    }
}

int
main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    std::map<std::string, const sg4::Link *> links;
    std::string line, word, name, link;

    engine.set_config("network/model:CM02");
    engine.set_config("network/crosstraffic:0");
    engine.set_config("network/TCP-gamma:0");
    engine.set_config("network/latency-factor:1");
    engine.set_config("network/bandwidth-factor:1");
    engine.set_config("network/weight-S:0");
    engine.set_config("maxmin/precision:1e-9");
    engine.set_config("surf/precision:1e-9");
    sg4::NetZone *zone = sg4::create_full_zone("all");
    std::ifstream file(argc > 1 ? argv[1] : "/dev/stdin");
    /* A host before each first link and one behind each last link: of all flows between
     * two of them the route is the same. */
    std::set<std::pair<sg4::Host *, sg4::Host *>> known;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        words >> word >> name;
        if (word == "link") {
            double capacity;
            words >> capacity;
            links[name] = zone->create_link(name, capacity)->set_latency(0)->seal();
        } else if (word == "flow") {
            flow f{name, 0, 0, nullptr, nullptr};
            std::vector<sg4::LinkInRoute> route;
            words >> f.start >> f.bytes >> word;
            std::istringstream path(word);
            while (std::getline(path, link, ','))
                route.emplace_back(links.at(link));
            f.from = host(zone, "from " + word.substr(0, word.find(',')));
            f.to = host(zone, "to " + word.substr(word.rfind(',') + 1));
            if (known.insert({f.from, f.to}).second)
                zone->add_route(f.from->get_netpoint(), f.to->get_netpoint(), nullptr,
                                nullptr, route, false);
            flows.push_back(f);
        }
    }
    zone->seal();
    std::stable_sort(flows.begin(), flows.end(),
                     [](const flow &a, const flow &b) { return a.start < b.start; });
    sg4::Actor::create("starter", flows.empty() ? zone->create_host("none", 1)
                                                : flows[0].from, start_all);
    engine.run();
    return 0;
}
