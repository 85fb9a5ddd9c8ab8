// The CUPTI library, opened at run time.
#pragma once

#include <sluice/backend/config.hpp>

/// 1 where traces can be compiled: the CUDA backend, CUPTI's headers of CUDA 12 or later, and dlopen are there. Define it as
/// 0 to do without them.
#if !defined(SLUICE_HAS_CUPTI)
#if SLUICE_HAS_CUDA && __has_include(<cupti.h>) && __has_include(<dlfcn.h>)
#include <cupti.h>
#if CUPTI_API_VERSION >= 19
#define SLUICE_HAS_CUPTI 1
#endif
#endif
#endif
#if !defined(SLUICE_HAS_CUPTI)
#define SLUICE_HAS_CUPTI 0
#endif

#if SLUICE_HAS_CUPTI
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <sluice/backend/error.hpp>

namespace sluice::detail::cupti {

/// What is called of the library. `decltype` alone names the functions, so that nothing has to be linked.
struct Library {
    std::string problem = {}; ///< Why it cannot be used; empty if it can.
    std::uint32_t version = 0;

    decltype(&cuptiGetVersion) get_version = nullptr;
    decltype(&cuptiGetResultString) get_result_string = nullptr;
    decltype(&cuptiGetTimestamp) get_timestamp = nullptr;
    decltype(&cuptiActivityEnable) activity_enable = nullptr;
    decltype(&cuptiActivityDisable) activity_disable = nullptr;
    decltype(&cuptiActivityFlushAll) activity_flush_all = nullptr;
    decltype(&cuptiActivityRegisterCallbacks) activity_register_callbacks = nullptr;
    decltype(&cuptiActivityGetNextRecord) activity_get_next_record = nullptr;
    decltype(&cuptiActivityGetNumDroppedRecords) activity_get_num_dropped_records = nullptr;
    decltype(&cuptiActivityPushExternalCorrelationId) push_external_correlation_id = nullptr;
    decltype(&cuptiActivityPopExternalCorrelationId) pop_external_correlation_id = nullptr;
    decltype(&cuptiGetGraphNodeId) get_graph_node_id = nullptr;
    decltype(&cuptiGetCallbackName) get_callback_name = nullptr;
    decltype(&cuptiSubscribe) subscribe = nullptr;
    decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
    decltype(&cuptiEnableCallback) enable_callback = nullptr;
    // Of later releases; null where they are missing.
    CUptiResult (*activity_enable_runtime_api)(CUpti_CallbackId, std::uint8_t) = nullptr;
    CUptiResult (*activity_enable_driver_api)(CUpti_CallbackId, std::uint8_t) = nullptr;
};

/// Where the library may be: by its name for the loader, beside the CUDA runtime, in the toolkit.
inline std::vector<std::string> places() {
    const std::string major = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
    std::vector<std::string> folders;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&cudaGetDevice), &info) != 0 && info.dli_fname != nullptr) {
        const std::string file = info.dli_fname;
        if (const std::size_t slash = file.rfind('/'); slash != std::string::npos) {
            folders.push_back(file.substr(0, slash));
            // As the Python packages of NVIDIA lay it out.
            folders.push_back(folders.back() + "/../../cuda_cupti/lib");
        }
    }
    std::vector<std::string> toolkits;
    for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* const value = std::getenv(variable); value != nullptr && *value != '\0')
            toolkits.emplace_back(value);
    }
    toolkits.emplace_back("/usr/local/cuda");
    toolkits.push_back("/usr/local/cuda-" + std::to_string(CUDART_VERSION / 1000) + "." +
                       std::to_string(CUDART_VERSION % 1000 / 10));
    for (const std::string& toolkit : toolkits) {
        for (const char* const folder : {"/extras/CUPTI/lib64", "/lib64", "/lib"})
            folders.push_back(toolkit + folder);
    }
    std::vector<std::string> result{major, "libcupti.so"};
    for (const std::string& folder : folders) {
        for (const std::string& file : {major, std::string("libcupti.so")})
            result.emplace_back(folder).append("/").append(file);
    }
    return result;
}

template <class Function>
void find(void* handle, const char* name, Function& function, std::string* missing) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr && missing != nullptr && missing->empty())
        *missing = name;
}

inline Library open_library() {
    Library library;
    void* handle = nullptr;
    for (const std::string& place : places()) {
        handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr)
            break;
    }
    if (handle == nullptr) {
        library.problem = "CUPTI is not here: expected libcupti.so." + std::to_string(CUDART_VERSION / 1000) +
                          " where the loader looks, beside libcudart, or in the toolkit that CUDA_HOME names "
                          "(extras/CUPTI/lib64)";
        return library;
    }
    std::string missing;
    find(handle, "cuptiGetVersion", library.get_version, &missing);
    find(handle, "cuptiGetResultString", library.get_result_string, &missing);
    find(handle, "cuptiGetTimestamp", library.get_timestamp, &missing);
    find(handle, "cuptiActivityEnable", library.activity_enable, &missing);
    find(handle, "cuptiActivityDisable", library.activity_disable, &missing);
    find(handle, "cuptiActivityFlushAll", library.activity_flush_all, &missing);
    find(handle, "cuptiActivityRegisterCallbacks", library.activity_register_callbacks, &missing);
    find(handle, "cuptiActivityGetNextRecord", library.activity_get_next_record, &missing);
    find(handle, "cuptiActivityGetNumDroppedRecords", library.activity_get_num_dropped_records, &missing);
    find(handle, "cuptiActivityPushExternalCorrelationId", library.push_external_correlation_id, &missing);
    find(handle, "cuptiActivityPopExternalCorrelationId", library.pop_external_correlation_id, &missing);
    find(handle, "cuptiGetGraphNodeId", library.get_graph_node_id, &missing);
    find(handle, "cuptiGetCallbackName", library.get_callback_name, &missing);
    find(handle, "cuptiSubscribe", library.subscribe, &missing);
    find(handle, "cuptiUnsubscribe", library.unsubscribe, &missing);
    find(handle, "cuptiEnableCallback", library.enable_callback, &missing);
    find(handle, "cuptiActivityEnableRuntimeApi", library.activity_enable_runtime_api, nullptr);
    find(handle, "cuptiActivityEnableDriverApi", library.activity_enable_driver_api, nullptr);
    if (!missing.empty()) {
        library.problem = "the CUPTI library that was found is too old: it has no " + missing;
        return library;
    }
    (void)library.get_version(&library.version);
    if (library.version < 19) {
        library.problem = "the CUPTI library that was found has version " + std::to_string(library.version) +
                          ", expected 19 (CUDA 12.0) or later";
    }
    return library;
}

/// The library; it stays open until the program ends.
inline const Library& library() {
    static const Library opened = open_library();
    return opened;
}

/// Throws `Error` unless `result` is a success.
inline void check(CUptiResult result, const char* function) {
    if (result == CUPTI_SUCCESS)
        return;
    const char* text = nullptr;
    (void)library().get_result_string(result, &text);
    std::string message = std::string("KernelTrace: ") + function + " failed: " +
                          (text != nullptr ? text : ("result " + std::to_string(static_cast<int>(result))));
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        message += "; another profiler uses CUPTI in this process already";
    throw Error(message);
}

} // namespace sluice::detail::cupti
#endif
