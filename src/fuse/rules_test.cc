// Every rule on the smallest step where it fires, and on a near miss for each of its conditions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuse/rule_testing.h"

namespace tw::fuse {
namespace {

using ::testing::HasSubstr;
using testing::Optimized;
using testing::optimized;

struct RuleCase {
  std::string_view rule;
  std::string_view what;  // the near miss, or "fires"
  std::string_view form;
  std::string_view body;
  int fires = 1;
  std::string_view why = {};  // of a miss: a part of the reason; empty when the pattern is not there at all
};

constexpr std::string_view kNorms = R"(
param p 1
const a 1x64
const b 1x64
const g 1x64
const g2 1x64
const gh 1x32
const row 1x64
const wo 64x64
const cos 40x16
const sin 40x16
const table 9x64
x = scale(x=a) factor=2
y = scale(x=b) factor=3
)";

const RuleCase kNormCases[] = {
    {"add_norm", "fires", "decode",
     "s = elementwise(a=x, b=y) op=add\nn = row_norm(x=s, weight=g)\nz = scale(x=n) factor=2"},
    {"add_norm", "fires and keeps a sum that is read", "decode",
     "s = elementwise(a=x, b=y) op=add\nn = row_norm(x=s, weight=g)\nz = elementwise(a=n, b=s) op=mul"},
    {"add_norm", "a row is added to all", "decode", "s = row_broadcast(a=x, b=row) op=add\nn = row_norm(x=s, weight=g)",
     0, "adds one row"},
    {"add_norm", "a difference", "decode", "s = elementwise(a=x, b=y) op=sub\nn = row_norm(x=s, weight=g)", 0},
    {"sandwich_norm", "fires", "decode",
     "o = row_norm(x=y, weight=g2)\ns = elementwise(a=x, b=o) op=add\nn = row_norm(x=s, weight=g)"},
    {"sandwich_norm", "fires with the normed operand first", "decode",
     "o = row_norm(x=y, weight=g2)\ns = elementwise(a=o, b=x) op=add\nn = row_norm(x=s, weight=g)"},
    {"sandwich_norm", "the inner norm has another reader", "decode",
     "o = row_norm(x=y, weight=g2)\ns = elementwise(a=x, b=o) op=add\nn = row_norm(x=s, weight=g)\nz = scale(x=o) "
     "factor=2",
     0, "another reader"},
    {"sandwich_norm", "the inner norm is per head", "decode",
     "o = row_norm(x=y, weight=gh) width=32\ns = elementwise(a=x, b=o) op=add\nn = row_norm(x=s, weight=g)", 0,
     "other widths"},
    {"sandwich_norm", "the inner norm is a layer norm", "decode",
     "o = row_norm(x=y, weight=g2) kind=layer\ns = elementwise(a=x, b=o) op=add\nn = row_norm(x=s, weight=g)", 0,
     "not a plain one"},
    {"head_norm_rope", "fires", "decode",
     "h = row_norm(x=x, weight=gh) width=32\nr = rope(x=h, cos=cos, sin=sin, position=p) width=32 half=16"},
    {"head_norm_rope", "the norm spans all heads", "decode",
     "h = row_norm(x=x, weight=g)\nr = rope(x=h, cos=cos, sin=sin, position=p) width=32 half=16", 0, "another number"},
    {"head_norm_rope", "the norm has another reader", "decode",
     "h = row_norm(x=x, weight=gh) width=32\nr = rope(x=h, cos=cos, sin=sin, position=p) width=32 half=16\nz = "
     "scale(x=h) factor=2",
     0, "another reader"},
    {"head_norm_rope", "what is rotated is the sum of a norm", "decode",
     "s = elementwise(a=x, b=y) op=add\nn = row_norm(x=s, weight=gh) width=32\n"
     "r = rope(x=s, cos=cos, sin=sin, position=p) width=32 half=16\nz = elementwise(a=n, b=r) op=add",
     0},
    {"gather_scale", "fires", "decode", "e = rows_gather(table=table, index=p)\nz = scale(x=e) factor=8"},
    {"gather_scale", "the row has another reader", "decode",
     "e = rows_gather(table=table, index=p)\nz = scale(x=e) factor=8\nn = elementwise(a=e, b=z) op=add", 0,
     "another reader"},
    {"gather_scale", "a second scale", "decode",
     "e = rows_gather(table=table, index=p)\nz = scale(x=e) factor=8\nn = scale(x=z) factor=2", 1, "scales already"},
    {"embed_norm", "fires", "decode", "e = rows_gather(table=table, index=p)\nn = row_norm(x=e, weight=g)"},
    {"embed_norm", "the norm is per head", "decode",
     "e = rows_gather(table=table, index=p)\nn = row_norm(x=e, weight=gh) width=32", 0, "not of the gathered rows"},
    {"gemv_norm_epilogue", "fires", "decode", "o = matmul(x=x, w=wo)\nn = row_norm(x=o, weight=g)"},
    {"gemv_norm_epilogue", "fires on what a norm adds", "decode",
     "o = matmul(x=x, w=wo)\ns = elementwise(a=y, b=o) op=add\nn = row_norm(x=s, weight=g)"},
    {"gemv_norm_epilogue", "the norm is per head", "decode",
     "o = matmul(x=x, w=wo)\nn = row_norm(x=o, weight=gh) width=32", 0, "not of the whole product"},
};

constexpr std::string_view kProducts = R"(
param p 1
const a 1x256
const row 1x64
const row2 1x128
const w1 256x64
const w2 256x64
const w3 256x32
const w6 256x64
const f1 256x64
const wd 64x256
const cos 40x16
const sin 40x16
state kc 40x64
x = scale(x=a) factor=2
x2 = scale(x=a) factor=3
)";

const RuleCase kProductCases[] = {
    {"gemv_bias", "fires", "decode", "o = matmul(x=x, w=w1)\nz = row_broadcast(a=o, b=row) op=add"},
    {"gemv_bias", "fires on floating-point weights", "decode",
     "o = matmul(x=x, w=f1)\nz = row_broadcast(a=o, b=row) op=add"},
    {"gemv_bias", "the product has another reader", "decode",
     "o = matmul(x=x, w=w1)\nz = row_broadcast(a=o, b=row) op=add\nq = elementwise(a=o, b=z) op=add", 0,
     "another reader"},
    {"gemv_bias", "what is added is computed", "decode",
     "c = scale(x=row) factor=2\no = matmul(x=x, w=w1)\nz = row_broadcast(a=o, b=c) op=add", 0, "not a constant"},
    {"gemv_bias", "a product, not a sum", "decode", "o = matmul(x=x, w=w1)\nz = row_broadcast(a=o, b=row) op=mul", 0},
    {"gemv_bias", "a second bias", "decode",
     "o = matmul(x=x, w=w1)\nz = row_broadcast(a=o, b=row) op=add\nq = row_broadcast(a=z, b=row) op=add", 1,
     "bias already"},
    {"glu_pair", "fires on silu", "decode",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x, w=w2)\nt = activate(x=g) kind=silu\nh = elementwise(a=t, b=u) op=mul"},
    {"glu_pair", "fires on gelu and two formats", "chunk:20",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x, w=w6)\nt = activate(x=g) kind=gelu_tanh\nh = elementwise(a=u, b=t) "
     "op=mul"},
    {"glu_pair", "the gate is a sigmoid", "decode",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x, w=w2)\nt = activate(x=g) kind=sigmoid\nh = elementwise(a=t, b=u) op=mul",
     0, "neither silu nor gelu"},
    {"glu_pair", "two activations", "decode",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x2, w=w2)\nt = activate(x=g) kind=silu\nh = elementwise(a=t, b=u) op=mul", 0,
     "different activations"},
    {"glu_pair", "the up product has another reader", "decode",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x, w=w2)\nt = activate(x=g) kind=silu\nh = elementwise(a=t, b=u) op=mul\n"
     "q = scale(x=u) factor=2",
     0, "another reader"},
    {"glu_pair", "one product by floating-point weights", "decode",
     "g = matmul(x=x, w=w1)\nu = matmul(x=x, w=f1)\nt = activate(x=g) kind=silu\nh = elementwise(a=t, b=u) op=mul", 0},
    {"gemv_parts", "fires", "decode", "o = matmul(x=x, w=w1)\nq = matmul(x=x, w=w3)"},
    {"gemv_parts", "other formats stay apart", "decode", "o = matmul(x=x, w=w1)\nq = matmul(x=x, w=w6)", 0},
    {"gemv_parts", "other activations stay apart", "decode", "o = matmul(x=x, w=w1)\nq = matmul(x=x2, w=w3)", 0},
    {"gemv_parts", "a product whose row a reader between needs", "decode",
     "o = matmul(x=x, w=w1)\nset_rows(table=kc, src=o, index=p)\nz = attention(q=o, k=kc, v=kc, position=p)\n"
     "q = matmul(x=x, w=w2)\nr = elementwise(a=q, b=z) op=add",
     0},
    {"qkv_head_epilogue", "fires", "decode",
     "o = matmul(x=x, w=w1)\nk = matmul(x=x, w=w2)\nr = rope(x=o, cos=cos, sin=sin, position=p) width=32 half=16\n"
     "t = rope(x=k, cos=cos, sin=sin, position=p) width=32 half=16"},
    {"qkv_head_epilogue", "a rotation of something else", "decode",
     "o = matmul(x=x, w=w1)\nk = matmul(x=x, w=w2)\nq = scale(x=k) factor=2\n"
     "r = rope(x=o, cos=cos, sin=sin, position=p) width=32 half=16\nt = rope(x=q, cos=cos, sin=sin, position=p) "
     "width=32 half=16",
     0, "something else"},
    {"rope_parts", "other tables stay apart", "decode",
     "o = matmul(x=x, w=w1)\nk = matmul(x=x, w=w2)\nr = rope(x=o, cos=cos, sin=sin, position=p) width=32 half=16\n"
     "t = rope(x=k, cos=sin, sin=cos, position=p) width=32 half=16",
     0},
    {"rope_parts", "one reads the other", "decode",
     "o = matmul(x=x, w=w1)\nr = rope(x=o, cos=cos, sin=sin, position=p) width=32 half=16\n"
     "t = rope(x=r, cos=cos, sin=sin, position=p) width=32 half=16",
     0, "reads what another writes"},
};

constexpr std::string_view kMoves = R"(
param p 1
const a 1x256
const gh 1x32
const g 1x64
const w1 256x64
const w2 256x96
const wk 128x48
const cos 40x16
const sin 40x16
const lat 1x64
state kc 40x64
state wide 40x96
state vc 40x48
x = scale(x=a) factor=2
o = matmul(x=x, w=w1)
c = matmul(x=x, w=w2)
)";

const RuleCase kMoveCases[] = {
    {"slice_read", "fires for a rotation", "decode",
     "s = head_slice(x=c) every=48 from=16 width=32\nr = rope(x=s, cos=cos, sin=sin, position=p) width=32 half=16"},
    {"slice_read", "fires for two readers", "decode",
     "s = head_slice(x=c) every=96 from=0 width=64\nn = row_norm(x=s, weight=g)\nm = row_norm(x=s)"},
    {"slice_read", "a reader that takes no part", "decode",
     "s = head_slice(x=c) every=96 from=0 width=64\nn = row_norm(x=s, weight=g)\nz = scale(x=s) factor=2", 0,
     "takes no part"},
    {"slice_read", "the norm is of another width", "decode",
     "s = head_slice(x=c) every=96 from=0 width=64\nn = row_norm(x=s, weight=gh) width=32", 0, "takes no part"},
    {"row_write", "fires", "decode", "set_rows(table=kc, src=o, index=p)"},
    {"row_write", "fires for a norm", "decode", "n = row_norm(x=o, weight=g)\nset_rows(table=kc, src=n, index=p)"},
    {"row_write", "the rows have another reader", "decode",
     "set_rows(table=kc, src=o, index=p)\nz = scale(x=o) factor=2", 0, "another reader"},
    {"row_write", "the producer writes no rows", "decode",
     "z = scale(x=o) factor=2\nset_rows(table=kc, src=z, index=p)", 0, "writes no rows"},
    {"row_write", "one value into two tables", "decode",
     "set_rows(table=kc, src=o, index=p)\nset_rows(table=kc, src=o) row=3", 0, "another reader"},
    {"join_in_place", "fires into a row of a table", "decode",
     "l = head_slice(x=c) every=96 from=0 width=64\nt = head_slice(x=c) every=96 from=64 width=32\nn = row_norm(x=l, "
     "weight=g)\n"
     "r = rope(x=t, cos=cos, sin=sin, position=p) width=32 half=16\nj = join(a=n, b=r) heads=1\nset_rows(table=wide, "
     "src=j, index=p)"},
    {"join_in_place", "a half that writes no units", "decode",
     "l = head_slice(x=c) every=96 from=0 width=64\nt = head_slice(x=c) every=96 from=64 width=32\nn = row_norm(x=l, "
     "weight=g)\n"
     "r = scale(x=t) factor=2\nj = join(a=n, b=r) heads=1",
     0, "writes no units"},
    {"join_in_place", "a half with another reader", "decode",
     "l = head_slice(x=c) every=96 from=0 width=64\nt = head_slice(x=c) every=96 from=64 width=32\nn = row_norm(x=l, "
     "weight=g)\n"
     "r = rope(x=t, cos=cos, sin=sin, position=p) width=32 half=16\nj = join(a=n, b=r) heads=1\nz = scale(x=n) "
     "factor=2",
     0, "another reader"},
    {"strided_values", "fires", "decode",
     "set_rows(table=kc, src=o, index=p)\nv = head_slice(x=kc) every=64 from=0 width=48\nz = attention(q=o, k=kc, v=v, "
     "position=p)"},
    {"strided_values", "the slice is of another table", "decode",
     "set_rows(table=kc, src=o, index=p)\nset_rows(table=wide, src=c, index=p)\n"
     "v = head_slice(x=wide) every=96 from=0 width=48\nz = attention(q=o, k=kc, v=v, position=p)",
     0, "something else"},
    {"strided_values", "the keys are written between", "decode",
     "set_rows(table=kc, src=o, index=p)\nv = head_slice(x=kc) every=64 from=0 width=48\nset_rows(table=kc, src=o) "
     "row=9\n"
     "z = attention(q=o, k=kc, v=v, position=p)",
     0, "a launch between writes what it reads"},
};

constexpr std::string_view kDelta = R"(
const a 1x256
const cw 4x64
const cw2 4x64
const cw5 5x64
const row 1x4
const gn 1x16
const wq 256x64
const wk 256x64
const fb 256x4
const fa 256x4
const wb 256x4
state r1 4x64
state r2 4x64
state r5 5x64
state mem 64x16
x = scale(x=a) factor=2
q = matmul(x=x, w=wq)
k = matmul(x=x, w=wk)
bl = matmul(x=x, w=fb)
al = matmul(x=x, w=fa)
)";

const RuleCase kDeltaCases[] = {
    {"conv_silu", "fires", "decode", "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu"},
    {"conv_silu", "the convolution has another reader", "decode",
     "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu\nz = scale(x=c) factor=2", 0, "another reader"},
    {"conv_silu", "a sigmoid", "decode", "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=sigmoid", 0},
    {"conv_silu_l2", "fires", "chunk:3",
     "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu\nn = l2_norm(x=s) width=16"},
    {"conv_silu_l2", "no silu between", "decode", "c = causal_conv(x=q, w=cw, ring=r1)\nn = l2_norm(x=c) width=16", 0,
     "no silu"},
    {"conv_parts", "fires", "decode",
     "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu\nn = l2_norm(x=s) width=16\n"
     "c2 = causal_conv(x=k, w=cw2, ring=r2)\ns2 = activate(x=c2) kind=silu"},
    {"conv_parts", "other taps stay apart", "decode",
     "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu\nc2 = causal_conv(x=k, w=cw5, ring=r5)\n"
     "s2 = activate(x=c2) kind=silu",
     0},
    {"conv_parts", "one reads the other", "decode",
     "c = causal_conv(x=q, w=cw, ring=r1)\ns = activate(x=c) kind=silu\nc2 = causal_conv(x=s, w=cw2, ring=r2)\n"
     "s2 = activate(x=c2) kind=silu",
     0, "reads what another writes"},
    {"conv_parts", "no silu", "decode", "c = causal_conv(x=q, w=cw, ring=r1)\nc2 = causal_conv(x=k, w=cw2, ring=r2)", 0,
     "no silu"},
    {"gates", "fires", "decode",
     "b = activate(x=bl) kind=sigmoid\nd = decay(x=al, bias=row, rate=row)\n"
     "y = gated_delta(q=q, k=k, v=q, z=k, beta=b, alpha=d, state=mem, norm=gn) value_heads=4 key_heads=4"},
    {"gates", "the write gate is no sigmoid", "decode",
     "b = activate(x=bl) kind=tanh\nd = decay(x=al, bias=row, rate=row)\n"
     "y = gated_delta(q=q, k=k, v=q, z=k, beta=b, alpha=d, state=mem, norm=gn) value_heads=4 key_heads=4",
     0, "no sigmoid"},
    {"gate_projections", "fires", "decode",
     "b = activate(x=bl) kind=sigmoid\nd = decay(x=al, bias=row, rate=row)\n"
     "y = gated_delta(q=q, k=k, v=q, z=k, beta=b, alpha=d, state=mem, norm=gn) value_heads=4 key_heads=4"},
    {"gate_projections", "a projection has another reader", "decode",
     "b = activate(x=bl) kind=sigmoid\nd = decay(x=al, bias=row, rate=row)\n"
     "y = gated_delta(q=q, k=k, v=q, z=k, beta=b, alpha=d, state=mem, norm=gn) value_heads=4 key_heads=4\nz = "
     "scale(x=bl) factor=2",
     0, "another reader"},
    {"gate_projections", "a projection by quantized rows", "decode",
     "bq = matmul(x=x, w=wb)\nb = activate(x=bq) kind=sigmoid\nd = decay(x=al, bias=row, rate=row)\n"
     "y = gated_delta(q=q, k=k, v=q, z=k, beta=b, alpha=d, state=mem, norm=gn) value_heads=4 key_heads=4",
     0, "no product by floating-point weights"},
    {"act_gate", "fires", "decode", "t = activate(x=q) kind=sigmoid\ny = elementwise(a=k, b=t) op=mul"},
    {"act_gate", "fires with the activated operand first", "decode",
     "t = activate(x=q) kind=gelu_tanh\ny = elementwise(a=t, b=k) op=add"},
    {"act_gate", "the activated value has another reader", "decode",
     "t = activate(x=q) kind=sigmoid\ny = elementwise(a=k, b=t) op=mul\nz = scale(x=t) factor=2", 0, "another reader"},
    {"act_gate", "a soft cap", "decode", "t = softcap(x=q) cap=5\ny = elementwise(a=k, b=t) op=mul", 0, "soft cap"},
    {"act_gate", "a difference", "decode", "t = activate(x=q) kind=sigmoid\ny = elementwise(a=k, b=t) op=sub", 0},
};

constexpr std::string_view kAttention = R"(
param p 1
const a 1x256
const wq 256x64
const wg 256x64
state kc 40x64
x = scale(x=a) factor=2
q = matmul(x=x, w=wq)
g = matmul(x=x, w=wg)
)";

const RuleCase kAttentionCases[] = {
    {"attn_output_gate", "fires", "decode",
     "o = attention(q=q, k=kc, v=kc, position=p)\nt = activate(x=g) kind=sigmoid\ny = elementwise(a=o, b=t) op=mul"},
    {"attn_output_gate", "the output has another reader", "decode",
     "o = attention(q=q, k=kc, v=kc, position=p)\nt = activate(x=g) kind=sigmoid\ny = elementwise(a=o, b=t) op=mul\n"
     "z = scale(x=o) factor=2",
     0, "another reader"},
    {"attn_output_gate", "a gate after a gate", "decode",
     "o = attention(q=q, k=kc, v=kc, position=p)\nt = activate(x=g) kind=sigmoid\ny = elementwise(a=o, b=t) op=mul\n"
     "u = activate(x=q) kind=sigmoid\nz = elementwise(a=y, b=u) op=mul",
     1, "gate already"},
};

constexpr std::string_view kMixture = R"(
const a 1x256
const res 1x256
const g 1x256
const fr 256x4
const wge 256x256
const wue 256x256
const wde 1024x64
const wsg 256x64
const wsu 256x64
const wsd 64x256
x = scale(x=a) factor=2
x2 = scale(x=a) factor=3
h = scale(x=res) factor=4
m = moe(x=x, router=fr, gate=wge, up=wue, down=wde) experts=4 used=2 hidden=64
)";

const RuleCase kMixtureCases[] = {
    {"shared_expert", "fires", "decode",
     "sg = matmul(x=x, w=wsg)\nsu = matmul(x=x, w=wsu)\nt = activate(x=sg) kind=silu\nhh = elementwise(a=t, b=su) "
     "op=mul\n"
     "s = matmul(x=hh, w=wsd)\ny = elementwise(a=m, b=s) op=add"},
    {"shared_expert", "it reads another activation", "decode",
     "sg = matmul(x=x2, w=wsg)\nsu = matmul(x=x2, w=wsu)\nt = activate(x=sg) kind=silu\nhh = elementwise(a=t, b=su) "
     "op=mul\n"
     "s = matmul(x=hh, w=wsd)\ny = elementwise(a=m, b=s) op=add",
     0, "another activation"},
    {"shared_expert", "its activation is gelu", "decode",
     "sg = matmul(x=x, w=wsg)\nsu = matmul(x=x, w=wsu)\nt = activate(x=sg) kind=gelu_tanh\nhh = elementwise(a=t, b=su) "
     "op=mul\n"
     "s = matmul(x=hh, w=wsd)\ny = elementwise(a=m, b=s) op=add",
     0, "not silu"},
    {"shared_expert", "the mixture has another reader", "decode",
     "sg = matmul(x=x, w=wsg)\nsu = matmul(x=x, w=wsu)\nt = activate(x=sg) kind=silu\nhh = elementwise(a=t, b=su) "
     "op=mul\n"
     "s = matmul(x=hh, w=wsd)\ny = elementwise(a=m, b=s) op=add\nz = scale(x=m) factor=2",
     0, "another reader"},
    {"moe_deferred_finalize", "fires on the mixture itself", "decode",
     "s = elementwise(a=h, b=m) op=add\nn = row_norm(x=s, weight=g)\nz = elementwise(a=s, b=n) op=add"},
    {"moe_deferred_finalize", "fires on a sum with it", "decode",
     "y = elementwise(a=m, b=x2) op=add\ns = elementwise(a=h, b=y) op=add\nn = row_norm(x=s, weight=g)"},
    {"moe_deferred_finalize", "the mixture has another reader", "decode",
     "s = elementwise(a=h, b=m) op=add\nn = row_norm(x=s, weight=g)\nz = scale(x=m) factor=2", 0, "another reader"},
};

class Rules : public ::testing::TestWithParam<std::pair<std::string_view, RuleCase>> {};

TEST_P(Rules, FiresExactlyAsExpected) {
  const auto& [head, c] = GetParam();
  const Optimized out = optimized(c.form, std::string(head) + std::string(c.body));
  EXPECT_EQ(out.fired(c.rule), c.fires) << c.what;
  if (!c.why.empty()) {
    EXPECT_THAT(out.missed(c.rule), HasSubstr(std::string(c.why))) << c.what;
  } else if (c.fires == 0) {
    EXPECT_EQ(out.missed(c.rule), "") << c.what;
  }
  // Held back it is absent, and says so where its pattern starts.
  const Optimized without = optimized(c.form, std::string(head) + std::string(c.body), {std::string(c.rule)});
  EXPECT_EQ(without.fired(c.rule), 0);
  if (c.fires != 0) {
    EXPECT_THAT(without.missed(c.rule), HasSubstr("held back"));
  }
  // Every op is covered exactly once.
  std::vector<int> times(out.step.ops.size(), 0);
  for (const auto& covers : out.covers) {
    for (const graph::OpId op : covers) ++times[graph::index(op)];
  }
  for (size_t op = 0; op < times.size(); ++op) {
    const bool view = std::holds_alternative<graph::RowGather>(out.step.ops[op].spec);
    EXPECT_EQ(times[op], view ? 0 : 1) << op;
  }
}

template <size_t N>
std::vector<std::pair<std::string_view, RuleCase>> with(std::string_view head, const RuleCase (&cases)[N]) {
  std::vector<std::pair<std::string_view, RuleCase>> out;
  for (const RuleCase& c : cases) out.emplace_back(head, c);
  return out;
}
std::string name_of(const ::testing::TestParamInfo<std::pair<std::string_view, RuleCase>>& info) {
  std::string name = std::string(info.param.second.rule) + "_" + std::string(info.param.second.what);
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Norms, Rules, ::testing::ValuesIn(with(kNorms, kNormCases)), name_of);
INSTANTIATE_TEST_SUITE_P(Products, Rules, ::testing::ValuesIn(with(kProducts, kProductCases)), name_of);
INSTANTIATE_TEST_SUITE_P(Moves, Rules, ::testing::ValuesIn(with(kMoves, kMoveCases)), name_of);
INSTANTIATE_TEST_SUITE_P(Delta, Rules, ::testing::ValuesIn(with(kDelta, kDeltaCases)), name_of);
INSTANTIATE_TEST_SUITE_P(Attention, Rules, ::testing::ValuesIn(with(kAttention, kAttentionCases)), name_of);
INSTANTIATE_TEST_SUITE_P(Mixture, Rules, ::testing::ValuesIn(with(kMixture, kMixtureCases)), name_of);

TEST(Rules, TheNormKeepsTheSumOnlyWhenItIsRead) {
  const std::string body = std::string(kNorms) + "s = elementwise(a=x, b=y) op=add\nn = row_norm(x=s, weight=g)\n";
  EXPECT_EQ(optimized("decode", body).only<lane::Norm>().sum, lane::kNoBuffer);
  const Optimized kept = optimized("decode", body + "z = elementwise(a=n, b=s) op=mul");
  EXPECT_EQ(kept.name(kept.only<lane::Norm>().sum), "s");
}

TEST(Rules, ASandwichKnowsBothNorms) {
  const Optimized out =
      optimized("decode", std::string(kNorms) +
                              "o = row_norm(x=y, weight=g2) eps=0.25\n"
                              "s = elementwise(a=o, b=x) op=add\nn = row_norm(x=s, weight=g) eps=0.5");
  const auto& norm = out.only<lane::Norm>();
  EXPECT_EQ(out.name(norm.x), "x");
  EXPECT_EQ(out.name(norm.add), "y");
  ASSERT_TRUE(norm.pre);
  EXPECT_EQ(out.name(norm.pre->w), "g2");
  EXPECT_EQ(norm.pre->eps, 0.25F);
  EXPECT_EQ(norm.eps, 0.5F);
}

TEST(Rules, TheHalvesOfAJoinLandInTheRowOfTheTable) {
  const Optimized out = optimized(
      "decode", std::string(kMoves) +
                    "l = head_slice(x=c) every=96 from=0 width=64\nt = head_slice(x=c) every=96 from=64 width=32\n"
                    "n = row_norm(x=l, weight=g)\nr = rope(x=t, cos=cos, sin=sin, position=p) width=32 half=16\n"
                    "j = join(a=n, b=r) heads=1\nset_rows(table=wide, src=j, index=p)");
  const auto& norm = out.only<lane::Norm>();
  EXPECT_EQ(norm.part, (lane::Part{96, 0}));
  ASSERT_TRUE(norm.into);
  EXPECT_EQ(out.name(norm.into->buf), "wide");
  EXPECT_EQ(norm.into->unit, (lane::Part{96, 0}));
  EXPECT_EQ(norm.into->row->pitch, 96U);
  const auto& rope = out.only<lane::Rope>();
  EXPECT_EQ(rope.part, (lane::Part{96, 64}));
  EXPECT_EQ(out.name(rope.y.buf), "wide");
  EXPECT_EQ(rope.y.unit, (lane::Part{96, 64}));
}

TEST(Rules, AChunksProductsMergeUnderAnotherName) {
  const std::string body = std::string("const a 20x256\nconst w1 256x64\nconst w2 256x64\n") +
                           "x = scale(x=a) factor=2\no = matmul(x=x, w=w1)\nq = matmul(x=x, w=w2)";
  EXPECT_EQ(optimized("chunk:20", body).fired("merged_projections"), 1);
  EXPECT_EQ(optimized("chunk:20", body).fired("gemv_parts"), 0);
  EXPECT_EQ(optimized("batch:20", body).fired("gemv_parts"), 1) << "a batch keeps its rows' order";
}

TEST(Rules, ABlockOfRowsBecomesOneMixture) {
  std::string body =
      "const a 2x256\nconst fr 256x4\nconst wge 256x256\nconst wue 256x256\nconst wde 1024x64\ntable t 2x256\n"
      "x = scale(x=a) factor=2\nr1 = row_gather(table=x) row=1\nr2 = row_gather(table=x) row=2\n"
      "m1 = moe(x=r1, router=fr, gate=wge, up=wue, down=wde) experts=4 used=2 hidden=64\nset_rows(table=t, src=m1) "
      "row=1\n"
      "m2 = moe(x=r2, router=fr, gate=wge, up=wue, down=wde) experts=4 used=2 hidden=64\n";
  const Optimized out =
      optimized("chunk:2", body + "set_rows(table=t, src=m2) row=2\ny = scale(x=t) factor=2", {"row_write"});
  EXPECT_EQ(out.fired("moe_rows"), 1);
  EXPECT_EQ(out.only<lane::Moe>().rows, 2U);
  EXPECT_EQ(out.name(out.only<lane::Moe>().y.buf), "t");
  const Optimized crossed =
      optimized("chunk:2", body + "set_rows(table=t, src=m2) row=1\ny = scale(x=t) factor=2", {"row_write"});
  EXPECT_EQ(crossed.fired("moe_rows"), 0);
  EXPECT_THAT(crossed.missed("moe_rows"), HasSubstr("its own row"));
}

TEST(Rules, ABatchsAttentionsTakeTheirRowsOfTheGate) {
  const Optimized out = optimized("batch:2", R"(
param p0 1 sequence=0
param p1 1 sequence=1
const a 2x256
const wq 256x64
const wg 256x64
state kc_s0 40x64 sequence=0
state kc_s1 40x64 sequence=1
table t 2x64
x = scale(x=a) factor=2
q = matmul(x=x, w=wq)
g = matmul(x=x, w=wg)
q_s0 = row_gather(table=q) row=1
q_s1 = row_gather(table=q) row=2
o_s0 = attention(q=q_s0, k=kc_s0, v=kc_s0, position=p0)
set_rows(table=t, src=o_s0) row=1
o_s1 = attention(q=q_s1, k=kc_s1, v=kc_s1, position=p1)
set_rows(table=t, src=o_s1) row=2
s = activate(x=g) kind=sigmoid
y = elementwise(a=t, b=s) op=mul
)");
  EXPECT_EQ(out.fired("attn_output_gate"), 1);
  std::vector<uint64_t> offsets;
  for (const lane::Launch& launch : out.launches) {
    if (const auto* a = std::get_if<lane::Attention>(&launch)) {
      EXPECT_EQ(out.name(a->gate), "g");
      offsets.push_back(a->gate_offset);
    }
    if (const auto* s = std::get_if<lane::SetRow>(&launch)) {
      EXPECT_EQ(out.name(s->table), "y");
    }
  }
  EXPECT_EQ(offsets, (std::vector<uint64_t>{0, 64}));
}

TEST(Rules, TheLaneIsAskedAndItsReasonIsTold) {
  const std::string body = std::string(kNorms) + "o = matmul(x=x, w=wo)\nn = row_norm(x=o, weight=g)";
  const Optimized out = optimized("decode", body, {}, testing::Without("gemv_norm"));
  EXPECT_EQ(out.fired("gemv_norm_epilogue"), 0);
  EXPECT_THAT(out.missed("gemv_norm_epilogue"), HasSubstr("no kernel for gemv_norm"));
}

TEST(Rules, AnUnknownNameCannotBeHeld) {
  const std::vector<std::string> held{"add_nrom"};
  const auto refused = check_held(held);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refusal().kind, RefusalKind::Usage);
  EXPECT_THAT(refused.refusal().remedy, HasSubstr("add_norm"));
}

TEST(Rules, TheTableHasTheNamesInTheirOrder) {
  std::vector<std::string_view> names;
  for (const Rule& rule : rules()) names.push_back(rule.name);
  EXPECT_THAT(names, ::testing::ElementsAre(
                         "add_norm", "sandwich_norm", "gemv_bias", "gemv_norm_epilogue", "head_norm_rope", "slice_read",
                         "row_write", "qkv_head_epilogue", "join_in_place", "conv_silu", "conv_silu_l2", "conv_parts",
                         "gates", "gate_projections", "act_gate", "attn_output_gate", "glu_pair", "shared_expert",
                         "moe_rows", "moe_deferred_finalize", "gather_scale", "embed_norm", "strided_values",
                         "rope_parts", "gemv_parts", "merged_projections"));
}

}  // namespace
}  // namespace tw::fuse
