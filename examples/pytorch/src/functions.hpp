/// \file
/// The functions that do whole batches, for Python.
#pragma once

#include "prefetches.hpp"

namespace sluice_flow {

/// `holds(lists)`: whether one guard holds.
inline Ref one_holds(PyObject* const* arguments) {
    return Ref::another(words[Guard{arguments[0]}.holds(Modes{}) ? Word::yes : Word::none]);
}

template <Ref (*work)(PyObject* const*)>
PyObject* guarded(PyObject*, PyObject* const* arguments, std::intptr_t) {
    try {
        return work(arguments).release();
    } catch (Raised) {
        return nullptr;
    }
}

/// The functions of flow.hpp, replays.hpp and prefetches.hpp, as objects of Python's.
inline PyObject* functions(PyObject* given) {
    constexpr int fast = 0x80; // METH_FASTCALL
    static PyMethodDef methods[] = {{"overlapped", guarded<overlapped>, fast, nullptr},
                                    {"graphed", guarded<graphed>, fast, nullptr},
                                    {"holds", guarded<one_holds>, fast, nullptr},
                                    {"prefetched", guarded<prefetched>, fast, nullptr},
                                    {"alone", guarded<alone>, fast, nullptr},
                                    {"wait_alone", guarded<wait_alone>, fast, nullptr}};
    try {
        words.take(given);
        Ref result = Ref::taken(PyList_New(0));
        for (PyMethodDef& method : methods)
            check(
                PyList_Append(result.get(), Ref::taken(PyCFunction_NewEx(&method, nullptr, nullptr)).get()));
        return result.release();
    } catch (Raised) {
        return nullptr;
    }
}

} // namespace sluice_flow
