// What the compiler says of stages, pipelines and sources that are made of something else: a sentence, where no deduction guide
// would fit and it would list them all.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>

#include <sluice/pipeline/pipeline.hpp>

/// \cond
namespace sluice {

namespace detail {

template <class Given>
inline constexpr bool is_stage_options = false;
template <class B>
inline constexpr bool is_stage_options<StageOptions<B>> = true;

/// Whether a stage can be made of it: of another one, of a name and a callable, or of these and options.
template <class... Given>
inline constexpr bool spells_stage = false;
template <class Given>
inline constexpr bool spells_stage<Given> = is_stage<Given>;
template <class Name, class Function>
inline constexpr bool spells_stage<Name, Function> = std::convertible_to<Name, std::string>;
template <class Name, class Function, class Options>
inline constexpr bool spells_stage<Name, Function, Options> =
    std::convertible_to<Name, std::string>&& is_stage_options<Options>;

} // namespace detail

// What is deduced then. It is a class of its own, so that the sentence comes first, and nothing else is looked into.

template <class... Given>
class Stage<detail::Types<Given...>, Host> {
    static_assert(detail::never<Given...>,
                  "sluice::Stage: a stage is made of its name and what it calls, and of options behind them, "
                  "as in Stage{\"encode\", callable} or Stage{\"encode\", callable, {.lanes = 2}}");

public:
    using Callable = void (*)(HostStreamRef);
    using backend = Host;
    explicit Stage(const Given&..., StageOptions<> = {}) {}
};
template <class... Given>
requires(!detail::spells_stage<Given...>) Stage(Given...)
->Stage<detail::Types<Given...>, Host>;

template <class... Given>
class Pipeline<detail::Types<Given...>, Slots<>> {
    static_assert(!(std::is_same_v<Given, detail::NoSuchOption> || ...), SLUICE_NO_SUCH_OPTION);
    static_assert((std::is_same_v<Given, detail::NoSuchOption> || ...),
                  "sluice::Pipeline: a pipeline is made of Stages{...}, of Slots{...} where stages make "
                  "something, and of options behind them, as in Pipeline{Stages{a, b}, Slots{make}, {.slots "
                  "= 3}}; of two stages and one maker there is also TwoStreamPipeline{a, b, make}");

public:
    explicit Pipeline(const Given&..., PipelineOptions = {}) {}
};
template <class... Given>
Pipeline(Given...) -> Pipeline<detail::Types<Given...>, Slots<>>;
template <class... Ss, class... Makers>
Pipeline(Stages<Ss...>, Slots<Makers...>, detail::NoSuchOption)
    -> Pipeline<detail::Types<detail::NoSuchOption, Ss...>, Slots<>>;
template <class... Ss>
Pipeline(Stages<Ss...>, detail::NoSuchOption)
    -> Pipeline<detail::Types<detail::NoSuchOption, Ss...>, Slots<>>;
// Behind options in braces, which could be anything.
template <class A>
Pipeline(A, PipelineOptions) -> Pipeline<detail::Types<A>, Slots<>>;
template <class A, class B>
Pipeline(A, B, PipelineOptions) -> Pipeline<detail::Types<A, B>, Slots<>>;
template <class A, class B, class C>
Pipeline(A, B, C, PipelineOptions) -> Pipeline<detail::Types<A, B, C>, Slots<>>;

template <class... Given>
class Source<detail::Types<Given...>, NoState, NoState, Host> {
    static_assert(detail::never<Given...>,
                  "sluice::Source: a source is made of make(int slot), which makes a batch, of "
                  "fill(std::size_t index, Batch& out), and of options behind them, as in Source{make, fill, "
                  "{.batches = 100}}; make_state(int worker) may stand between the two");

public:
    explicit Source(const Given&..., SourceOptions<> = {}) {}
};
template <class... Given>
Source(Given...) -> Source<detail::Types<Given...>, NoState, NoState, Host>;
template <class A, class B>
requires(!std::invocable<A&, int>) Source(A, B, SourceOptions<>)
->Source<detail::Types<A, B>, NoState, NoState, Host>;

} // namespace sluice
/// \endcond
