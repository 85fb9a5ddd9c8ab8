// The macros min and max, as <windows.h> defines them. The standard library's headers come first: they undefine them, or
// break.
#pragma once

#include <sluice/backend/config.hpp>

#if __has_include(<bits/stdc++.h>)
#include <bits/stdc++.h>
#if SLUICE_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
