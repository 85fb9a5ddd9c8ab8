/// \file
/// Copies of a batch's tensors to the device. A contiguous tensor of the host is copied by CUDA's own call, which costs a third of what
/// PyTorch's does: who calls this holds the tensor until the copy is done, so PyTorch's allocator of pinned memory need not know.
#pragma once

#include <algorithm>
#include <array>

#include "steps.hpp"
#include "words.hpp"

namespace sluice_flow {

using sluice_steps::Steps;

[[noreturn]] inline void fail(int error) {
    const Ref code = Ref::taken(PyLong_FromLongLong(error));
    PyObject_CallFunctionObjArgs(words[Word::failed], code.get(), nullptr); // raises
    throw Raised{};
}

inline void require(int error) {
    if (error != 0)
        fail(error);
}

/// Enqueues the copy of a contiguous tensor of the host.
inline void copy_to(void* to, PyObject* tensor, std::size_t bytes, cudaStream_t stream) {
    constexpr std::size_t small = 1 << 15;
    if (bytes == 0)
        return;
    const Ref address = called(tensor, words.data_ptr);
    const void* const from = PyLong_AsVoidPtr(address.get());
    void* const thread =
        bytes > small ? PyEval_SaveThread() : nullptr; // memory that is not pinned is copied by the host
    const int error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
    if (thread != nullptr)
        PyEval_RestoreThread(thread);
    require(error);
}

/// A contiguous tensor of the host, of a type that is known, without a gradient.
struct Source {
    static constexpr std::size_t most = 8; // dimensions
    std::array<std::int64_t, most> sizes{};
    std::size_t dimensions = 0, bytes = 0;
    std::int32_t type = 0;

    /// Whether `leaf`, which is a tensor with strides, is one.
    bool look_at(PyObject* leaf) {
        const Ref dtype = attribute(leaf, words.dtype);
        if (!is_true(attribute(leaf, words.is_cpu)) || is_true(attribute(leaf, words.requires_grad)) ||
            !is_true(called(leaf, words.is_contiguous)) || is_true(called(leaf, words.is_neg)))
            return false;
        return take(dtype.get(), attribute(leaf, words.shape).get()) && has_strides_of(leaf);
    }

    /// PyTorch calls a tensor contiguous whatever the strides of dimensions of size 1 are, and a copy keeps them.
    bool has_strides_of(PyObject* leaf) const {
        if (std::none_of(sizes.begin(), sizes.begin() + dimensions,
                         [](std::int64_t size) { return size < 2; }))
            return true;
        const Ref strides = called(leaf, words.stride);
        const auto expected = contiguous();
        for (std::size_t i = 0; i < dimensions; ++i)
            if (number(item(strides.get(), static_cast<std::intptr_t>(i))) != expected[i])
                return false;
        return true;
    }

    std::array<std::int64_t, most> contiguous() const {
        std::array<std::int64_t, most> strides{};
        std::int64_t stride = 1;
        for (std::size_t i = dimensions; i-- > 0;) {
            strides[i] = stride;
            stride *= sizes[i] > 1 ? sizes[i] : 1;
        }
        return strides;
    }

    /// Of another tensor's type and shape.
    bool take(PyObject* dtype, PyObject* shape) {
        PyObject* const known = PyDict_GetItemWithError(words[Word::types], dtype);
        if (known == nullptr)
            return false;
        const long long found = number(known);
        type = static_cast<std::int32_t>(found >> 8);
        bytes = static_cast<std::size_t>(found & 0xff);
        dimensions = static_cast<std::size_t>(PyTuple_Size(shape));
        if (dimensions > most)
            return false;
        for (std::size_t i = 0; i < dimensions; ++i) {
            sizes[i] = number(PyTuple_GetItem(shape, static_cast<std::intptr_t>(i)));
            bytes *= static_cast<std::size_t>(sizes[i]);
        }
        return true;
    }

    /// Memory for it on a device.
    Ref allocated(std::int32_t device_type, std::int32_t device, void*& address) const {
        const std::array<std::int64_t, most> strides = contiguous();
        AtenTensorHandle handle = nullptr;
        if (aoti_torch_empty_strided(static_cast<std::int64_t>(dimensions), sizes.data(), strides.data(),
                                     type, device_type, device, &handle) != AOTI_TORCH_SUCCESS)
            return {};
        aoti_torch_get_data_ptr(handle, &address);
        const Ref handles = Ref::taken(PyList_New(1));
        check(
            PyList_SetItem(handles.get(), 0, Ref::taken(PyCapsule_New(handle, nullptr, nullptr)).release()));
        const Ref tensors =
            Ref::taken(PyObject_CallFunctionObjArgs(words[Word::wrap], handles.get(), nullptr));
        return Ref::another(item(tensors.get(), 0));
    }
};

} // namespace sluice_flow
