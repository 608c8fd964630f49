#pragma once

// Functions of real numbers that several ops share, and the integers of the integer ops.

#include <cstdint>
#include <optional>
#include <span>

#include "graph/op.h"

namespace tw::graph {

double sigmoid(double x);
double silu(double x);
double gelu_tanh(double x);
double softplus(double x);  // ln(1 + e^x)
double activate(ActivationKind kind, double x);
double dot(std::span<const double> a, std::span<const double> b);
double softcapped(double x, double cap);
// Softmax in place; `sink` is one more logit that takes part in the sum and has no value.
void softmax(std::span<double> x, std::optional<double> sink);
// mean of x^2
double mean_square(std::span<const double> x);

// Exact for every sum and product the integer ops form.
__extension__ using Integer = __int128;
Integer floor_div(Integer a, Integer b);  // Requires b != 0.
// The value of an i32 tensor; nothing for a double that is none.
std::optional<int32_t> as_i32(double x);
std::optional<int32_t> as_i32(Integer x);

}  // namespace tw::graph
