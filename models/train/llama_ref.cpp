// Reference run through llama.cpp (f32 KV cache, no flash attention).
//   llama_ref BACKEND_DIR MODEL logits IDS_FILE OUT.bin       logits of every position, f32
//   llama_ref BACKEND_DIR MODEL greedy N "prompt" ...         JSON on stdout
//   llama_ref BACKEND_DIR MODEL ppl IDS.u16 N                 mean nats/token over windows of 512 (as in training)
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "ggml-backend.h"
#include "llama.h"

static std::string esc(const std::string& s) {
  std::string o;
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') {
      o += '\\';
      o += c;
    } else if (c == '\n')
      o += "\\n";
    else if (c < 32) {
      char b[8];
      snprintf(b, 8, "\\u%04x", c);
      o += b;
    } else
      o += c;
  }
  return o;
}

int main(int argc, char** argv) {
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  llama_log_set(
      [](ggml_log_level l, const char* t, void*) {
        if (l >= GGML_LOG_LEVEL_WARN) fputs(t, stderr);
      },
      nullptr);
  llama_model_params mp = llama_model_default_params();
  mp.n_gpu_layers = 0;
  mp.use_extra_bufts = false;
  llama_model* m = llama_model_load_from_file(argv[2], mp);
  if (!m) return 1;
  const llama_vocab* v = llama_model_get_vocab(m);
  int nv = llama_vocab_n_tokens(v);
  auto ctx = [&](int n) {
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = n;
    cp.n_batch = n;
    cp.n_ubatch = n;
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    cp.n_threads = cp.n_threads_batch = 1;
    return llama_init_from_model(m, cp);
  };
  auto decode = [&](llama_context* c, const llama_token* t, int n, int pos, bool all) {
    llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
      b.token[i] = t[i];
      b.pos[i] = pos + i;
      b.n_seq_id[i] = 1;
      b.seq_id[i][0] = 0;
      b.logits[i] = all || i == n - 1;
    }
    int r = llama_decode(c, b);
    llama_batch_free(b);
    if (r) {
      fprintf(stderr, "decode %d\n", r);
      exit(2);
    }
  };
  std::string mode = argv[3];
  if (mode == "logits") {
    std::vector<llama_token> ids;
    FILE* f = fopen(argv[4], "r");
    int x;
    while (fscanf(f, "%d", &x) == 1) ids.push_back(x);
    fclose(f);
    llama_context* c = ctx(512);
    decode(c, ids.data(), ids.size(), 0, true);
    f = fopen(argv[5], "wb");
    for (size_t i = 0; i < ids.size(); i++) fwrite(llama_get_logits_ith(c, i), 4, nv, f);
    fclose(f);
  } else if (mode == "ppl") {
    FILE* f = fopen(argv[4], "rb");
    std::vector<uint16_t> d(1 << 22);
    size_t n = fread(d.data(), 2, d.size(), f);
    fclose(f);
    size_t lim = atoi(argv[5]);
    double tot = 0;
    size_t cnt = 0;
    for (size_t i = 0; i + 1 < n && cnt < lim; i += 512) {
      size_t k = std::min<size_t>(512, n - 1 - i);
      std::vector<llama_token> ids(d.begin() + i, d.begin() + i + k);
      llama_context* c = ctx(512);
      decode(c, ids.data(), k, 0, true);
      for (size_t j = 0; j < k; j++) {
        const float* l = llama_get_logits_ith(c, j);
        double mx = l[0];
        for (int q = 1; q < nv; q++) mx = std::max<double>(mx, l[q]);
        double s = 0;
        for (int q = 0; q < nv; q++) s += exp(l[q] - mx);
        tot += mx + log(s) - l[d[i + j + 1]];
        cnt++;
      }
      llama_free(c);
    }
    printf("%.6f nats/token over %zu tokens\n", tot / cnt, cnt);
  } else {
    int N = atoi(argv[4]);
    printf("[\n");
    for (int a = 5; a < argc; a++) {
      std::vector<llama_token> ids(1024);
      int n = llama_tokenize(v, argv[a], strlen(argv[a]), ids.data(), ids.size(), true, true);
      ids.resize(n);
      llama_context* c = ctx(512);
      decode(c, ids.data(), n, 0, false);
      std::vector<llama_token> out;
      std::vector<double> lp, gap;
      std::string text;
      int pos = n;
      for (int i = 0; i < N; i++) {
        const float* l = llama_get_logits_ith(c, -1);
        int best = 0;
        for (int q = 1; q < nv; q++)
          if (l[q] > l[best]) best = q;
        float second = -1e30f;
        for (int q = 0; q < nv; q++)
          if (q != best && l[q] > second) second = l[q];
        double s = 0;
        for (int q = 0; q < nv; q++) s += exp((double)l[q] - l[best]);
        out.push_back(best);
        lp.push_back(-log(s));
        gap.push_back((double)l[best] - second);
        char buf[256];
        int k = llama_token_to_piece(v, best, buf, sizeof buf, 0, true);
        text.append(buf, k);
        if (llama_vocab_is_eog(v, best)) break;
        llama_token t = best;
        decode(c, &t, 1, pos++, false);
      }
      printf(" {\"prompt\": \"%s\",\n  \"prompt_tokens\": [", esc(argv[a]).c_str());
      for (int i = 0; i < n; i++) printf("%s%d", i ? ", " : "", ids[i]);
      printf("],\n  \"tokens\": [");
      for (size_t i = 0; i < out.size(); i++) printf("%s%d", i ? ", " : "", out[i]);
      printf("],\n  \"logprobs\": [");
      for (size_t i = 0; i < lp.size(); i++) printf("%s%.5f", i ? ", " : "", lp[i]);
      printf("],\n  \"top2_logit_gap\": [");
      for (size_t i = 0; i < gap.size(); i++) printf("%s%.5f", i ? ", " : "", gap[i]);
      printf("],\n  \"text\": \"%s\"}%s\n", esc(text).c_str(), a + 1 < argc ? "," : "");
      llama_free(c);
    }
    printf("]\n");
  }
  llama_model_free(m);
}
