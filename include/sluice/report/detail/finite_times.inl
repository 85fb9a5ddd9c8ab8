// That what was noted of a pipeline can be reckoned with.
#pragma once

#include <initializer_list>
#include <utility>

#include <sluice/report/detail/numbers.hpp>

namespace sluice::detail::bound {

/// That all times are finite: others have no order.
inline void require_finite(const PipelineTimes& times, const char* function) {
    using Named = std::initializer_list<std::pair<const char*, double>>;
    const auto require = [&](const char* table, std::size_t batch, Named all) {
        for (const auto& [name, time] : all) {
            if (time - time != 0)
                throw Error(std::string(function) + ": PipelineTimes::" + table + " has a time of batch " +
                            std::to_string(batch) + " whose '" + name + "' is " + numbers::shortest(time) +
                            " us; expected finite times");
        }
    };
    using Table = std::pair<const char*, decltype(&times.stages)>; // named, for nvcc 12
    for (const auto& [table, notes] : {Table{"stages", &times.stages}, Table{"submits", &times.submits}}) {
        for (const StageTime& t : *notes)
            require(table, t.batch,
                    {{"begin", t.begin},
                     {"end", t.end},
                     {"waited", t.waited},
                     {"reading", t.reading},
                     {"made", t.made},
                     {"used", t.used},
                     {"results", t.results}});
    }
    for (const FillTime& t : times.fills)
        require("fills", t.batch,
                {{"claimed", t.claimed},
                 {"begin", t.begin},
                 {"end", t.end},
                 {"asked", t.asked},
                 {"given", t.given}});
    if (times.pace - times.pace != 0)
        throw Error(std::string(function) + ": PipelineTimes::pace is " + numbers::shortest(times.pace) +
                    " us; expected a finite time");
}

} // namespace sluice::detail::bound
