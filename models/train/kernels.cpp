// CPU kernels for training the gated delta-net layer: causal depthwise convolution + SiLU,
// l2-normalised gated delta rule (recurrent form, states recomputed in the backward pass), gated RMS norm.
// Plain C interface, called through ctypes.  Row layout of M: [ q (K*S) | k (K*S) | v (V*S) | z (V*S) ].
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

constexpr int S = 32;   // state size per head
constexpr int CK = 16;  // checkpoint interval of the recurrence
typedef float Row[S];

static inline float dot(const float* a, const float* b) {
  float r = 0;
  for (int i = 0; i < S; i++) r += a[i] * b[i];
  return r;
}

extern "C" {

// A[b,t,c] = silu(sum_j w[c,j] M[b,t-3+j,c]),  c < n
void conv_fwd(int B, int T, int n, int ld, const float* M, const float* w, float* A) {
  std::vector<float> wt(4 * n);
  for (int c = 0; c < n; c++)
    for (int j = 0; j < 4; j++) wt[j * n + c] = w[c * 4 + j];
#pragma omp parallel for collapse(2)
  for (int b = 0; b < B; b++)
    for (int t = 0; t < T; t++) {
      float* a = A + ((size_t)b * T + t) * n;
      const float* x = M + ((size_t)b * T + t) * ld;
      for (int c = 0; c < n; c++) a[c] = wt[3 * n + c] * x[c];
      for (int j = 0; j < 3; j++)
        if (t - 3 + j >= 0) {
          const float* xj = x - (size_t)(3 - j) * ld;
          for (int c = 0; c < n; c++) a[c] += wt[j * n + c] * xj[c];
        }
      for (int c = 0; c < n; c++) a[c] = a[c] / (1.f + expf(-a[c]));
    }
}

// dA in, dM (first n columns) and dw out
void conv_bwd(int B, int T, int n, int ld, const float* M, const float* w, const float* dA, float* dM, float* dw) {
  std::vector<float> wt(4 * n), dwb((size_t)B * 4 * n, 0.f);
  for (int c = 0; c < n; c++)
    for (int j = 0; j < 4; j++) wt[j * n + c] = w[c * 4 + j];
#pragma omp parallel for
  for (int b = 0; b < B; b++) {
    std::vector<float> ring(4 * n, 0.f);  // dy of t, t+1, t+2, t+3
    float* dwl = &dwb[(size_t)b * 4 * n];
    for (int t = T - 1; t >= 0; t--) {
      float* dy = &ring[(t & 3) * n];
      const float *x = M + ((size_t)b * T + t) * ld, *da = dA + ((size_t)b * T + t) * n;
      for (int c = 0; c < n; c++) dy[c] = wt[3 * n + c] * x[c];
      for (int j = 0; j < 3; j++)
        if (t - 3 + j >= 0) {
          const float* xj = x - (size_t)(3 - j) * ld;
          for (int c = 0; c < n; c++) dy[c] += wt[j * n + c] * xj[c];
        }
      for (int c = 0; c < n; c++) {
        float s = 1.f / (1.f + expf(-dy[c]));
        dy[c] = da[c] * s * (1.f + dy[c] * (1.f - s));
      }
      for (int j = 0; j < 4; j++)
        if (t - 3 + j >= 0) {
          const float* xj = x - (size_t)(3 - j) * ld;
          for (int c = 0; c < n; c++) dwl[j * n + c] += dy[c] * xj[c];
        }
      float* dx = dM + ((size_t)b * T + t) * ld;
      for (int c = 0; c < n; c++) dx[c] = wt[3 * n + c] * dy[c];
      for (int j = 0; j < 3; j++)
        if (t + 3 - j < T) {
          const float* dj = &ring[((t + 3 - j) & 3) * n];
          for (int c = 0; c < n; c++) dx[c] += wt[j * n + c] * dj[c];
        }
    }
  }
  for (int c = 0; c < n; c++)
    for (int j = 0; j < 4; j++) {
      float r = 0;
      for (int b = 0; b < B; b++) r += dwb[((size_t)b * 4 + j) * n + c];
      dw[c * 4 + j] = r;
    }
}

static void norm_rows(int T, int n, const float* A, float eps, float scale, std::vector<float>& out,
                      std::vector<float>& inv) {
  out.resize((size_t)T * S);
  inv.resize(T);
  for (int t = 0; t < T; t++) {
    const float* a = A + (size_t)t * n;
    float r = 1.f / std::max(std::sqrt(dot(a, a)), eps);
    inv[t] = r;
    for (int i = 0; i < S; i++) out[(size_t)t * S + i] = a[i] * r * scale;
  }
}

// one step in place; P receives the decayed state when asked for, u the innovation
static inline void step(Row* st, const float* q, const float* k, const float* v, float a, float beta, float* o, Row* P,
                        float* u) {
  float kv[S] = {0}, qs[S] = {0};
  for (int i = 0; i < S; i++) {
    float ki = k[i], qi = q[i];
    for (int j = 0; j < S; j++) {
      float x = st[i][j] * a;
      st[i][j] = x;
      kv[j] += ki * x;
      qs[j] += qi * x;
    }
  }
  if (P) memcpy(P, st, sizeof(Row) * S);
  float d[S], uu[S], qk = dot(q, k);
  for (int j = 0; j < S; j++) {
    uu[j] = v[j] - kv[j];
    d[j] = beta * uu[j];
  }
  if (u) memcpy(u, uu, sizeof uu);
  if (o)
    for (int j = 0; j < S; j++) o[j] = qs[j] + qk * d[j];
  for (int i = 0; i < S; i++) {
    float ki = k[i];
    for (int j = 0; j < S; j++) st[i][j] += ki * d[j];
  }
}

// A [B,T,(2K+V)S], g (log decay) and beta [B,T,V] -> O [B,T,V*S]; ck [B,V,T/CK,S,S]
void gdr_fwd(int B, int T, int K, int V, float eps, const float* A, const float* g, const float* beta, float* O,
             float* ck) {
  const int n = (2 * K + V) * S, nc = (T + CK - 1) / CK;
#pragma omp parallel for collapse(2)
  for (int b = 0; b < B; b++)
    for (int kh = 0; kh < K; kh++) {
      std::vector<float> q, k, iq, ik;
      const float* Ab = A + (size_t)b * T * n;
      norm_rows(T, n, Ab + kh * S, eps, 1.f / std::sqrt((float)S), q, iq);
      norm_rows(T, n, Ab + (K + kh) * S, eps, 1.f, k, ik);
      for (int h = kh; h < V; h += K) {
        alignas(64) Row st[S];
        memset(st, 0, sizeof st);
        for (int t = 0; t < T; t++) {
          if (t % CK == 0) memcpy(ck + (((size_t)b * V + h) * nc + t / CK) * S * S, st, sizeof st);
          size_t bt = (size_t)b * T + t;
          step(st, &q[t * S], &k[t * S], Ab + (size_t)t * n + (2 * K + h) * S, expf(g[bt * V + h]), beta[bt * V + h],
               O + (bt * V + h) * S, nullptr, nullptr);
        }
      }
    }
}

void gdr_bwd(int B, int T, int K, int V, float eps, const float* A, const float* g, const float* beta, const float* ck,
             const float* dO, float* dA, float* dg, float* dbeta) {
  const int n = (2 * K + V) * S, nc = (T + CK - 1) / CK;
  const float scale = 1.f / std::sqrt((float)S);
#pragma omp parallel for collapse(2)
  for (int b = 0; b < B; b++)
    for (int kh = 0; kh < K; kh++) {
      std::vector<float> q, k, iq, ik, dq((size_t)T * S, 0.f), dk((size_t)T * S, 0.f);
      const float* Ab = A + (size_t)b * T * n;
      float* dAb = dA + (size_t)b * T * n;
      norm_rows(T, n, Ab + kh * S, eps, scale, q, iq);
      norm_rows(T, n, Ab + (K + kh) * S, eps, 1.f, k, ik);
      std::vector<float> Pb((size_t)CK * S * S), ub(CK * S);
      for (int h = kh; h < V; h += K) {
        alignas(64) Row G[S], st[S];
        memset(G, 0, sizeof G);
        for (int c = nc - 1; c >= 0; c--) {
          int t0 = c * CK, t1 = std::min(T, t0 + CK);
          memcpy(st, ck + (((size_t)b * V + h) * nc + c) * S * S, sizeof st);
          for (int t = t0; t < t1; t++) {
            size_t bt = (size_t)b * T + t;
            step(st, &q[t * S], &k[t * S], Ab + (size_t)t * n + (2 * K + h) * S, expf(g[bt * V + h]), beta[bt * V + h],
                 nullptr, (Row*)&Pb[(size_t)(t - t0) * S * S], &ub[(t - t0) * S]);
          }
          for (int t = t1 - 1; t >= t0; t--) {
            size_t bt = (size_t)b * T + t;
            const Row* P = (const Row*)&Pb[(size_t)(t - t0) * S * S];
            const float *u = &ub[(t - t0) * S], *qt = &q[t * S], *kt = &k[t * S], *dO_ = dO + (bt * V + h) * S;
            float be = beta[bt * V + h], a = expf(g[bt * V + h]);
            float doo[S], d[S], dd[S] = {0}, du[S];
            for (int j = 0; j < S; j++) {
              doo[j] = dO_[j];
              d[j] = be * u[j];
            }
            float ddo = dot(d, doo);
            float *dqt = &dq[t * S], *dkt = &dk[t * S];
            for (int i = 0; i < S; i++) {
              float qi = qt[i], ki = kt[i], r1 = 0, r2 = 0;
              for (int j = 0; j < S; j++) {
                float x = G[i][j] + qi * doo[j];
                G[i][j] = x;
                dd[j] += ki * x;
                r1 += P[i][j] * doo[j];
                r2 += x * d[j];
              }
              dqt[i] += r1 + ki * ddo;
              dkt[i] += r2;
            }
            dbeta[bt * V + h] = dot(dd, u);
            float* dv = dAb + (size_t)t * n + (2 * K + h) * S;
            for (int j = 0; j < S; j++) {
              du[j] = be * dd[j];
              dv[j] = du[j];
            }
            float acc[S] = {0};
            for (int i = 0; i < S; i++) {
              float ki = kt[i], r3 = 0;
              for (int j = 0; j < S; j++) {
                float x = G[i][j] - ki * du[j];
                acc[j] += x * P[i][j];
                r3 += P[i][j] * du[j];
                G[i][j] = a * x;
              }
              dkt[i] -= r3;
            }
            float dgs = 0;
            for (int j = 0; j < S; j++) dgs += acc[j];
            dg[bt * V + h] = dgs;
          }
        }
      }
      for (int t = 0; t < T; t++) {  // through the l2 norms
        float *o = dAb + (size_t)t * n + kh * S, *o2 = dAb + (size_t)t * n + (K + kh) * S;
        const float *qn = &q[t * S], *kn = &k[t * S];
        // qn = scale * q/|q|, so with e = qn/scale: dq = scale/|q| (g - e (e.g))
        float cq = dot(qn, &dq[t * S]) / (scale * scale), ckk = dot(kn, &dk[t * S]);
        for (int i = 0; i < S; i++) {
          o[i] = iq[t] * scale * (dq[t * S + i] - qn[i] * cq);
          o2[i] = ik[t] * (dk[t * S + i] - kn[i] * ckk);
        }
      }
    }
}

// Y = rms(O) * w * silu(z), z at column zo of M
void gnorm_fwd(int R, int V, int ld, int zo, float eps, const float* O, const float* M, const float* w, float* Y) {
#pragma omp parallel for
  for (int r = 0; r < R; r++)
    for (int h = 0; h < V; h++) {
      const float *o = O + ((size_t)r * V + h) * S, *z = M + (size_t)r * ld + zo + h * S;
      float *y = Y + ((size_t)r * V + h) * S, i = 1.f / std::sqrt(dot(o, o) / S + eps);
      for (int j = 0; j < S; j++) y[j] = o[j] * i * w[j] * z[j] / (1.f + expf(-z[j]));
    }
}

void gnorm_bwd(int R, int V, int ld, int zo, float eps, const float* O, const float* M, const float* w, const float* dY,
               float* dO, float* dM, float* dw) {
  float acc[S] = {0};
#pragma omp parallel for reduction(+ : acc[:S])
  for (int r = 0; r < R; r++)
    for (int h = 0; h < V; h++) {
      size_t p = ((size_t)r * V + h) * S;
      const float *o = O + p, *z = M + (size_t)r * ld + zo + h * S, *dy = dY + p;
      float *dO_ = dO + p, *dz = dM + (size_t)r * ld + zo + h * S;
      float inv = 1.f / std::sqrt(dot(o, o) / S + eps), dn[S], nn[S], m = 0;
      for (int j = 0; j < S; j++) {
        float s = 1.f / (1.f + expf(-z[j])), sl = z[j] * s, nj = o[j] * inv;
        nn[j] = nj;
        acc[j] += dy[j] * nj * sl;
        dz[j] = dy[j] * nj * w[j] * s * (1.f + z[j] * (1.f - s));
        dn[j] = dy[j] * w[j] * sl;
      }
      m = dot(dn, nn) / S;
      for (int j = 0; j < S; j++) dO_[j] = inv * (dn[j] - nn[j] * m);
    }
  memcpy(dw, acc, sizeof acc);
}
}
