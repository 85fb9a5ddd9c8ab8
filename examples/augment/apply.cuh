/// \file
/// Defines `apply` on a device, for a chain that a .cu file composes: one kernel a call. See apply.hpp for the contract, and
/// kernels/ for the kernels that it chooses from.
#pragma once

#include <augment/apply.hpp>

#include <augment/kernels/launch.inl>
