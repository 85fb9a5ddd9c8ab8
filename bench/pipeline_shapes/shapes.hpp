/// \file
/// The groups of cases of pipeline_shapes; main.cpp says what each shows. All need a device.
#pragma once

namespace bench {

void add_host_time();
void add_uneven();
void add_slow_source();
void add_cpu_stage();
void add_multi_copy();
void add_two_gpus();

/// Adds the device and the versions of CUDA to the context that is printed. False, with a word, where there is none.
bool describe();

} // namespace bench
