/// \file
/// What the functions of flow.hpp use of PyTorch and Python: given once, by python/sluice/pipelines/compiled.py.
#pragma once

#include <cstddef>

#include "python.hpp"

namespace sluice_flow {

using sluice_python::attribute;
using sluice_python::called;
using sluice_python::check;
using sluice_python::number;
using sluice_python::Raised;
using sluice_python::Ref;

/// Places in the tuple that Python gives.
enum class Word {
    unhandled,
    tensor,
    tuple,
    list,
    atoms,
    strided,
    to,
    without_waiting,
    use_count,
    storages_in,
    call,
    empty,
    none,
    failed,
    types,
    wrap,
    address,
    modes,
    autocast,
    around,
    yes
};

struct Words {
    PyObject *all = nullptr, *tensor = nullptr, *tuple = nullptr, *list = nullptr, *strided = nullptr;
    Ref cdata, untyped_storage, clone, version, layout, dtype, is_cpu, requires_grad, is_contiguous, is_neg,
        shape, stride, data_ptr, copy, grad, detach, attributes;

    PyObject* operator[](Word word) const { return PyTuple_GetItem(all, static_cast<std::intptr_t>(word)); }

    /// Keeps `given` for as long as the process lasts.
    void take(PyObject* given) {
        Py_IncRef(given);
        all = given;
        tensor = (*this)[Word::tensor];
        tuple = (*this)[Word::tuple];
        list = (*this)[Word::list];
        strided = (*this)[Word::strided];
        const auto name = [](const char* text) { return Ref::taken(PyUnicode_InternFromString(text)); };
        cdata = name("_cdata");
        untyped_storage = name("untyped_storage");
        clone = name("clone");
        version = name("_version");
        layout = name("layout");
        dtype = name("dtype");
        is_cpu = name("is_cpu");
        requires_grad = name("requires_grad");
        is_contiguous = name("is_contiguous");
        is_neg = name("is_neg");
        shape = name("shape");
        stride = name("stride");
        data_ptr = name("data_ptr");
        copy = name("copy_");
        grad = name("grad");
        detach = name("detach");
        attributes = name("__dict__");
    }
};

/// Never destroyed: Python is gone by then.
inline Words& words = *new Words;

inline bool is_true(const Ref& object) {
    const int found = PyObject_IsTrue(object.get());
    check(found);
    return found == 1;
}

inline bool is_tensor(PyObject* object) { return object->type == words.tensor; }
inline bool is_flat(PyObject* object) { return object->type == words.tuple || object->type == words.list; }

inline PyObject* item(PyObject* sequence, std::intptr_t place) {
    PyObject* const found =
        sequence->type == words.tuple ? PyTuple_GetItem(sequence, place) : PyList_GetItem(sequence, place);
    if (found == nullptr)
        throw Raised{};
    return found;
}

inline std::intptr_t size(PyObject* sequence) {
    return sequence->type == words.tuple ? PyTuple_Size(sequence) : PyList_Size(sequence);
}

inline void put(PyObject* list, std::intptr_t place, Ref value) {
    check(PyList_SetItem(list, place, value.release()));
}

/// Whether the storage object alone holds its memory.
inline bool is_held(PyObject* storage) {
    const Ref cdata = attribute(storage, words.cdata);
    return number(
               Ref::taken(PyObject_CallFunctionObjArgs(words[Word::use_count], cdata.get(), nullptr)).get()) >
           1;
}

inline void append_held(PyObject* late, PyObject* storages) {
    for (std::intptr_t i = 0; i < size(storages); ++i)
        if (is_held(item(storages, i)))
            check(PyList_Append(late, item(storages, i)));
}

/// Storages of all tensors that a stage returned, those in a tensor's attributes too, as a tuple or list.
inline Ref storages_in(PyObject* tree) {
    if (is_tensor(tree) && attribute(tree, words.layout).get() == words.strided &&
        !is_true(attribute(tree, words.attributes))) {
        if (PyObject* const storage =
                PyObject_CallMethodObjArgs(tree, words.untyped_storage.get(), nullptr)) {
            Ref result = Ref::taken(PyTuple_New(1));
            check(PyTuple_SetItem(result.get(), 0, storage));
            return result;
        }
        PyErr_Clear();
    }
    return Ref::taken(PyObject_CallFunctionObjArgs(words[Word::storages_in], tree, nullptr));
}

/// How often PyTorch saw a tensor written; of one made under inference_mode that is not counted.
inline Ref version_of(PyObject* tensor) {
    PyObject* const found = PyObject_GetAttr(tensor, words.version.get());
    if (found != nullptr)
        return Ref::taken(found);
    PyErr_Clear();
    return Ref::taken(PyLong_FromLongLong(0));
}

} // namespace sluice_flow
