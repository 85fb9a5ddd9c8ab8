/// \file
/// The names of the Host backend's parts.
///
/// Each is a class template over nothing, `BasicQueue<void>` by the name of `Queue`. A compiler instantiates of a
/// template what a program uses, and compiles all of a plain class: a unit that only includes the backend takes a third
/// less time that way. So a part names the others by its own parameter: by these names a compiler would instantiate them
/// where it reads the part.
#pragma once

namespace sluice::host {

template <class>
class BasicQueue;
template <class>
class BasicWorkers;
template <class>
class BasicBranches;
template <class>
struct BasicNode;
template <class>
class BasicGraph;
template <class>
class BasicGraphExec;
template <class>
class BasicCapture;
template <class>
class BasicMemoryMap;
template <class>
class BasicEvent;
template <class>
class BasicSemaphore;

using Queue = BasicQueue<void>;
using Workers = BasicWorkers<void>;
using Branches = BasicBranches<void>;
using Node = BasicNode<void>;
using Graph = BasicGraph<void>;
using GraphExec = BasicGraphExec<void>;
using Capture = BasicCapture<void>;
using MemoryMap = BasicMemoryMap<void>;
using Event = BasicEvent<void>;
using Semaphore = BasicSemaphore<void>;

} // namespace sluice::host
