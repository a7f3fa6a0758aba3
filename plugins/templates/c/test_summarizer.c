/* The summarizer on this machine: no WebAssembly needed.
 *   cc -o test test_summarizer.c summarizer.c foreshorten.c && ./test */
#include "foreshorten.h"
#include <assert.h>
#include <stdio.h>

static fs_text reply = {"## Session intent\nMend the build", 32};
static size_t replies;
static fs_text asked, written;

void fs_import_config(fs_text *out) { *out = fs_of("{}"); }
void fs_import_replies(fs_texts *out) { *out = (fs_texts){&reply, replies}; }
void fs_import_prior(fs_text *out) { *out = fs_of("Three files were read."); }
void fs_import_sections(fs_texts *out) { *out = (fs_texts){NULL, 0}; }
void fs_import_span_text(uint32_t offset, uint32_t max, fs_text *out) { (void)offset, (void)max; *out = fs_of("mend it"); }
uint32_t fs_import_max_output_tokens(void) { return 500; }
void fs_import_ask(const char *system, size_t system_len, const char *user, size_t user_len, uint32_t most) {
  (void)system, (void)system_len, (void)most;
  asked = (fs_text){user, user_len};
}
void fs_import_section(const char *heading, size_t heading_len, const char *text, size_t text_len) {
  (void)heading, (void)heading_len;
  written = (fs_text){text, text_len};
}

const fs_verdict *fs_export_step(void);

int main(void) {
  assert(!fs_export_step()->is_error && fs_contains(asked, "Three files were read.\n\nWhat happened since:\nmend it") && written.len == 0);
  replies = 1;
  assert(!fs_export_step()->is_error && fs_same(written, reply));
  puts("ok");
  return 0;
}
