/// \file
/// The functions of CPython that pipelines call: of its stable ABI, the same in each version from 3.10 on, and declared here. So a
/// build needs no headers of Python's, and one library serves them all. They are weak: a program without Python loads the library too.
#pragma once

#include <cstdint>
#include <utility>

extern "C" {
struct PyObject {
    std::intptr_t references;
    PyObject* type;
};
struct PyMethodDef {
    const char* name;
    PyObject* (*function)(PyObject* self, PyObject* const* arguments, std::intptr_t count);
    int flags;
    const char* documentation;
};
#define SLUICE_PYTHON(result, name, ...) __attribute__((weak)) result name(__VA_ARGS__)
SLUICE_PYTHON(void, Py_IncRef, PyObject*);
SLUICE_PYTHON(void, Py_DecRef, PyObject*);
SLUICE_PYTHON(void*, PyEval_SaveThread, );
SLUICE_PYTHON(void, PyEval_RestoreThread, void*);
SLUICE_PYTHON(PyObject*, PyErr_Occurred, );
SLUICE_PYTHON(void, PyErr_Clear, );
SLUICE_PYTHON(PyObject*, PyObject_GetAttr, PyObject*, PyObject*);
SLUICE_PYTHON(int, PyObject_SetAttr, PyObject*, PyObject*, PyObject*);
SLUICE_PYTHON(PyObject*, PyObject_GetItem, PyObject*, PyObject*);
SLUICE_PYTHON(std::intptr_t, PyObject_Size, PyObject*);
SLUICE_PYTHON(int, PyObject_IsTrue, PyObject*);
SLUICE_PYTHON(int, PyObject_RichCompareBool, PyObject*, PyObject*, int);
SLUICE_PYTHON(PyObject*, PyObject_Call, PyObject*, PyObject*, PyObject*);
SLUICE_PYTHON(PyObject*, PyObject_CallNoArgs, PyObject*);
SLUICE_PYTHON(PyObject*, PyObject_CallFunctionObjArgs, PyObject*, ...);
SLUICE_PYTHON(PyObject*, PyObject_CallMethodObjArgs, PyObject*, PyObject*, ...);
SLUICE_PYTHON(PyObject*, PyTuple_New, std::intptr_t);
SLUICE_PYTHON(std::intptr_t, PyTuple_Size, PyObject*);
SLUICE_PYTHON(PyObject*, PyTuple_GetItem, PyObject*, std::intptr_t);
SLUICE_PYTHON(int, PyTuple_SetItem, PyObject*, std::intptr_t, PyObject*);
SLUICE_PYTHON(PyObject*, PyList_New, std::intptr_t);
SLUICE_PYTHON(std::intptr_t, PyList_Size, PyObject*);
SLUICE_PYTHON(PyObject*, PyList_GetItem, PyObject*, std::intptr_t);
SLUICE_PYTHON(int, PyList_SetItem, PyObject*, std::intptr_t, PyObject*);
SLUICE_PYTHON(int, PyList_Append, PyObject*, PyObject*);
SLUICE_PYTHON(int, PyList_SetSlice, PyObject*, std::intptr_t, std::intptr_t, PyObject*);
SLUICE_PYTHON(PyObject*, PyList_AsTuple, PyObject*);
SLUICE_PYTHON(PyObject*, PyDict_GetItemWithError, PyObject*, PyObject*);
SLUICE_PYTHON(int, PyDict_SetItem, PyObject*, PyObject*, PyObject*);
SLUICE_PYTHON(int, PyDict_DelItem, PyObject*, PyObject*);
SLUICE_PYTHON(int, PyDict_Next, PyObject*, std::intptr_t*, PyObject**, PyObject**);
SLUICE_PYTHON(std::intptr_t, PyDict_Size, PyObject*);
SLUICE_PYTHON(int, PySet_Contains, PyObject*, PyObject*);
SLUICE_PYTHON(PyObject*, PyLong_FromVoidPtr, void*);
SLUICE_PYTHON(void*, PyLong_AsVoidPtr, PyObject*);
SLUICE_PYTHON(PyObject*, PyLong_FromLongLong, long long);
SLUICE_PYTHON(long long, PyLong_AsLongLong, PyObject*);
SLUICE_PYTHON(PyObject*, PyUnicode_InternFromString, const char*);
SLUICE_PYTHON(PyObject*, PyCapsule_New, void*, const char*, void (*)(PyObject*));
SLUICE_PYTHON(void*, PyCapsule_GetPointer, PyObject*, const char*);
SLUICE_PYTHON(PyObject*, PyCFunction_NewEx, PyMethodDef*, PyObject*, PyObject*);
#undef SLUICE_PYTHON
}

namespace sluice_python {

/// Python raised an exception, which is for the caller of the library.
struct Raised {};

/// A reference that is given back.
class Ref {
public:
    Ref() = default;
    Ref(const Ref& other) : object_(other.object_) { Py_IncRef(object_); }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_DecRef(object_); } // which ignores a null

    /// Takes over a reference, that of a call which may have failed.
    static Ref taken(PyObject* object) {
        if (object == nullptr)
            throw Raised{};
        Ref result;
        result.object_ = object;
        return result;
    }
    static Ref another(PyObject* object) {
        Py_IncRef(object);
        return taken(object);
    }

    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }

private:
    PyObject* object_ = nullptr;
};

inline void check(int result) {
    if (result < 0)
        throw Raised{};
}

inline Ref attribute(PyObject* owner, const Ref& name) {
    return Ref::taken(PyObject_GetAttr(owner, name.get()));
}

inline Ref called(PyObject* owner, const Ref& method) {
    return Ref::taken(PyObject_CallMethodObjArgs(owner, method.get(), nullptr));
}

inline long long number(PyObject* object) {
    const long long found = PyLong_AsLongLong(object);
    if (found == -1 && PyErr_Occurred() != nullptr)
        throw Raised{};
    return found;
}

} // namespace sluice_python
