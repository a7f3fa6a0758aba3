/* Stages and summarizers for Foreshorten in C, as WebAssembly. One inline function for each function of the interface
 * (plugin.wit, package foreshorten:plugin@0.1.0), in its order; what each means is said there, and in short here.
 *
 * A plugin is one file that ends in FS_STAGE(plan) or FS_SUMMARIZER(step), and is linked with foreshorten.c. It has no
 * C library. Every call is a fresh instance, so memory is handed out and never taken back, and statics begin as they were
 * compiled. Text is UTF-8 with a length, without a zero at its end.
 *
 * Compiled for another machine than WebAssembly, the functions `fs_import_…` are ordinary ones, which a test defines. */
#ifndef FORESHORTEN_H
#define FORESHORTEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { uint8_t *at; size_t len; } fs_bytes;
typedef struct { uint16_t *at; size_t len; } fs_halves;
typedef struct { uint32_t *at; size_t len; } fs_words;
typedef struct { const char *at; size_t len; } fs_text;
typedef struct { fs_text *at; size_t len; } fs_texts;
/* NULL: it went well. Else why not, in words that end in a zero; all decisions of the call are dropped then. */
typedef const char *fs_error;

#define FS_ALL UINT32_MAX  /* as a count: to the end */
#define FS_NONE UINT32_MAX /* in a column: there is none */

enum { FS_SYSTEM, FS_USER, FS_ASSISTANT, FS_REASONING, FS_CALL, FS_RESULT }; /* kinds; anything else: other */
enum {                                                                       /* bits of marks */
  FS_ERROR = 1, FS_MEDIA = 2, FS_PROTECTED = 4, FS_SEALED = 8, FS_RECALL = 16, FS_ORPHAN = 32, FS_PENDING = 64, FS_KEPT = 128
};
enum { FS_VERBATIM, FS_ELIDED, FS_CONDENSED, FS_PREVIEW, FS_CLEARED, FS_COVERED }; /* levels */
enum { FS_ORDINARY, FS_NEVER_REDUCED, FS_KEEP_ARGUMENTS, FS_DROP_FIRST };          /* rules */
enum { FS_PART_TEXT, FS_PART_IMAGE, FS_PART_FILE, FS_PART_OPAQUE };                /* kinds of parts */
enum { FS_LOG_ERROR, FS_LOG_WARNING, FS_LOG_INFO, FS_LOG_DEBUG, FS_LOG_TRACE };
enum {                                                                             /* what fs_would_save is asked about */
  FS_SAVE_CLEAR, FS_SAVE_CLEAR_SUPERSEDED, FS_SAVE_OFFLOAD, FS_SAVE_ELIDE_MEDIA, FS_SAVE_ELIDE_PART,
  FS_SAVE_CLIP_ARGUMENTS, FS_SAVE_OMIT_REASONING, FS_SAVE_PERSIST
};

/* --- memory and text ------------------------------------------------------------------------------------------------ */

/* Zeroed memory, which lasts as long as the call. Never NULL: where there is none left, the call ends in a trap. */
void *fs_alloc(size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *at, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);

static inline fs_text fs_of(const char *text) { return (fs_text){text, strlen(text)}; }
static inline bool fs_same(fs_text a, fs_text b) { return a.len == b.len && memcmp(a.at, b.at, a.len) == 0; }
/* Whether `what` stands somewhere in `text`. */
bool fs_contains(fs_text text, const char *what);
/* A text that grows: `fs_text line = {0}; fs_add(&line, fs_of("cleared ")); fs_add_number(&line, 3);` */
void fs_add(fs_text *to, fs_text more);
void fs_add_number(fs_text *to, uint64_t number);
/* The number after "key": in a flat JSON object, as fs_config() gives it; `otherwise` where there is none. */
uint64_t fs_config_number(const char *key, uint64_t otherwise);

/* --- the interface --------------------------------------------------------------------------------------------------- */

#ifdef __wasm__
#define FS_IMPORT(interface, name) __attribute__((import_module("foreshorten:plugin/" interface "@0.1.0"), import_name(name)))
#define FS_EXPORT(name) __attribute__((export_name(name)))
#else
#define FS_IMPORT(interface, name)
#define FS_EXPORT(name)
#endif

/* Functions that answer with a list write it through their last argument. */
#define FS_IN const uint32_t *entries, size_t len
#define FS_GET(type, interface, link, name)                                                  \
  FS_IMPORT(interface, link) void fs_import_##name(type *out);                               \
  static inline type fs_##name(void) { type out = {0}; fs_import_##name(&out); return out; }
#define FS_NUMBER(type, interface, link, name)                                               \
  FS_IMPORT(interface, link) type fs_import_##name(void);                                    \
  static inline type fs_##name(void) { return fs_import_##name(); }
#define FS_COLUMN(type, link, name)                                                          \
  FS_IMPORT("history", link) void fs_import_##name(uint32_t start, uint32_t count, type *out); \
  static inline type fs_##name(uint32_t start, uint32_t count) {                             \
    type out = {0}; fs_import_##name(start, count, &out); return out; }
#define FS_DECIDE(link, name)                                                                \
  FS_IMPORT("decisions", link) void fs_import_##name(FS_IN, fs_bytes *out);                  \
  static inline fs_bytes fs_##name(FS_IN) { fs_bytes out = {0}; fs_import_##name(entries, len, &out); return out; }

/* env */
FS_GET(fs_text, "env", "config", config) /* JSON */
FS_IMPORT("env", "log") void fs_import_log(uint32_t level, const char *at, size_t len);
static inline void fs_log(uint8_t level, fs_text line) { fs_import_log(level, line.at, line.len); }

/* history: columns over start .. start + count, clipped; fs_kinds(0, FS_ALL) is all */
FS_NUMBER(uint32_t, "history", "len", len)
FS_COLUMN(fs_bytes, "kinds", kinds)
FS_COLUMN(fs_halves, "marks", marks)
FS_COLUMN(fs_bytes, "levels", levels)
FS_COLUMN(fs_words, "groups", groups)
FS_COLUMN(fs_words, "pairs", pairs)               /* FS_NONE: no such call or result */
FS_COLUMN(fs_words, "weights", weights)           /* tokens in the transcript */
FS_COLUMN(fs_words, "view-weights", view_weights) /* tokens in the view now */
FS_COLUMN(fs_words, "sizes", sizes)               /* bytes of text */
FS_COLUMN(fs_words, "tool-ids", tool_ids)         /* places in fs_tools() */
FS_COLUMN(fs_bytes, "rules", rules)               /* the operator's rule for the tool */
FS_GET(fs_texts, "history", "tools", tools)
FS_IMPORT("history", "call-id") void fs_import_call_id(uint32_t entry, fs_text *out);
static inline fs_text fs_call_id(uint32_t entry) { fs_text out = {0}; fs_import_call_id(entry, &out); return out; }
FS_IMPORT("history", "part-count") uint32_t fs_import_part_count(uint32_t entry);
static inline uint32_t fs_part_count(uint32_t entry) { return fs_import_part_count(entry); }
FS_IMPORT("history", "part-kind") uint32_t fs_import_part_kind(uint32_t entry, uint32_t part);
static inline uint32_t fs_part_kind(uint32_t entry, uint32_t part) { return fs_import_part_kind(entry, part); }
FS_IMPORT("history", "text")
void fs_import_part_text(uint32_t entry, uint32_t part, uint32_t offset, uint32_t max, fs_text *out);
/* At most `max` bytes of a text part from byte `offset`. */
static inline fs_text fs_part_text(uint32_t entry, uint32_t part, uint32_t offset, uint32_t max) {
  fs_text out = {0}; fs_import_part_text(entry, part, offset, max, &out); return out; }
FS_IMPORT("history", "texts") void fs_import_first_texts(FS_IN, uint32_t max, fs_texts *out);
/* The first `max` bytes of the text of each. */
static inline fs_texts fs_first_texts(FS_IN, uint32_t max) {
  fs_texts out = {0}; fs_import_first_texts(entries, len, max, &out); return out; }

/* budget, in calibrated tokens */
FS_NUMBER(uint64_t, "budget", "window", window)
FS_NUMBER(uint64_t, "budget", "usable", usable)
FS_NUMBER(uint64_t, "budget", "target", target)
FS_NUMBER(uint64_t, "budget", "view-tokens", view_tokens)
FS_NUMBER(uint32_t, "budget", "aggressive", aggressive) /* 1: the provider rejected the view */
FS_NUMBER(uint32_t, "budget", "tail-start", tail_start) /* first group of the protected tail */
FS_NUMBER(uint64_t, "budget", "turn", turn)
FS_IMPORT("budget", "raw") uint64_t fs_import_raw(uint64_t tokens);
/* Tokens as weights count them that so many calibrated ones buy. */
static inline uint64_t fs_raw(uint64_t tokens) { return fs_import_raw(tokens); }
static inline bool fs_reached_target(void) { return fs_view_tokens() <= fs_target(); }

/* decisions: one code an entry, 0 accepted, else why not (plugin.wit lists them) */
FS_DECIDE("clear", clear)
FS_DECIDE("clear-superseded", clear_superseded)
FS_DECIDE("elide-media", elide_media)
FS_DECIDE("clip-arguments", clip_arguments)
FS_DECIDE("omit-reasoning", omit_reasoning)
FS_IMPORT("decisions", "offload") void fs_import_offload(FS_IN, uint32_t head, uint32_t tail, fs_bytes *out);
static inline fs_bytes fs_offload(FS_IN, uint32_t head, uint32_t tail) {
  fs_bytes out = {0}; fs_import_offload(entries, len, head, tail, &out); return out; }
FS_IMPORT("decisions", "persist") void fs_import_persist(FS_IN, uint32_t head, fs_bytes *out);
static inline fs_bytes fs_persist(FS_IN, uint32_t head) {
  fs_bytes out = {0}; fs_import_persist(entries, len, head, &out); return out; }
FS_IMPORT("decisions", "elide-part") uint32_t fs_import_elide_part(uint32_t entry, uint32_t part);
static inline uint32_t fs_elide_part(uint32_t entry, uint32_t part) { return fs_import_elide_part(entry, part); }
FS_IMPORT("decisions", "snip") uint32_t fs_import_snip(uint32_t start, uint32_t end);
static inline uint32_t fs_snip(uint32_t start, uint32_t end) { return fs_import_snip(start, end); }
FS_IMPORT("decisions", "request-summary") uint32_t fs_import_request_summary(uint32_t end);
static inline uint32_t fs_request_summary(uint32_t end) { return fs_import_request_summary(end); }
FS_IMPORT("decisions", "pin") uint32_t fs_import_pin(uint32_t entry);
static inline uint32_t fs_pin(uint32_t entry) { return fs_import_pin(entry); }
FS_IMPORT("decisions", "would-save")
void fs_import_would_save(uint32_t what, FS_IN, uint32_t a, uint32_t b, fs_words *out);
/* Tokens that decisions would save, without making them; 0 where refused. */
static inline fs_words fs_would_save(uint8_t what, FS_IN, uint32_t a, uint32_t b) {
  fs_words out = {0}; fs_import_would_save(what, entries, len, a, b, &out); return out; }
FS_IMPORT("decisions", "explain") void fs_import_explain(const char *at, size_t len);
/* One line for the notice. In a summarizer: fs_explain_summary. */
static inline void fs_explain(fs_text line) { fs_import_explain(line.at, line.len); }

/* condensing; needs grants = ["condensing"] in plugin.toml */
FS_IMPORT("condensing", "condense") uint32_t fs_import_condense(uint32_t entry, const char *at, size_t len);
static inline uint32_t fs_condense(uint32_t entry, fs_text text) { return fs_import_condense(entry, text.at, text.len); }

/* memo */
FS_GET(fs_bytes, "memo", "load", load_memo)
FS_IMPORT("memo", "store") uint32_t fs_import_store_memo(const uint8_t *at, size_t len);
static inline bool fs_store_memo(const uint8_t *at, size_t len) { return fs_import_store_memo(at, len) != 0; }

/* summarizing */
FS_GET(fs_words, "summarizing", "span", span)
FS_IMPORT("summarizing", "span-text") void fs_import_span_text(uint32_t offset, uint32_t max, fs_text *out);
static inline fs_text fs_span_text(uint32_t offset, uint32_t max) {
  fs_text out = {0}; fs_import_span_text(offset, max, &out); return out; }
FS_GET(fs_text, "summarizing", "prior", prior)
FS_GET(fs_texts, "summarizing", "sections", sections)
FS_NUMBER(uint32_t, "summarizing", "max-chars", max_chars)
FS_NUMBER(uint32_t, "summarizing", "max-output-tokens", max_output_tokens)
FS_GET(fs_texts, "summarizing", "replies", replies)
FS_IMPORT("summarizing", "ask")
void fs_import_ask(const char *system, size_t system_len, const char *user, size_t user_len, uint32_t max_output_tokens);
/* Ask a model and return: the step is run again with the reply. */
static inline void fs_ask(fs_text system, fs_text user, uint32_t max_output_tokens) {
  fs_import_ask(system.at, system.len, user.at, user.len, max_output_tokens); }
FS_IMPORT("summarizing", "section")
void fs_import_section(const char *heading, size_t heading_len, const char *text, size_t text_len);
static inline void fs_section(fs_text heading, fs_text text) {
  fs_import_section(heading.at, heading.len, text.at, text.len); }
FS_IMPORT("summarizing", "explain") void fs_import_explain_summary(const char *at, size_t len);
static inline void fs_explain_summary(fs_text line) { fs_import_explain_summary(line.at, line.len); }

/* --- exports ---------------------------------------------------------------------------------------------------------- */

/* result<_, string>, as it lies in memory. */
typedef struct { uint32_t is_error; const char *at; size_t len; } fs_verdict;
const fs_verdict *fs_verdict_of(fs_error error);

#define FS_PLUGIN(interface, main, checked, does)                                                                        \
  FS_EXPORT("foreshorten:plugin/" interface "@0.1.0#check") const fs_verdict *fs_export_check(void);                     \
  const fs_verdict *fs_export_check(void) { return fs_verdict_of(checked); }                                             \
  FS_EXPORT("foreshorten:plugin/" interface "@0.1.0#" main) const fs_verdict *fs_export_##does(void);                    \
  const fs_verdict *fs_export_##does(void) { return fs_verdict_of(does()); }
/* What the file exports: a function `fs_error plan(void)`, or `fs_error step(void)`. The _CHECKED ones have an
 * `fs_error check(void)` as well, which looks at the configuration when the plugin is loaded. */
#define FS_STAGE(plan) FS_PLUGIN("stage-api", "plan", NULL, plan)
#define FS_STAGE_CHECKED(check, plan) FS_PLUGIN("stage-api", "plan", check(), plan)
#define FS_SUMMARIZER(step) FS_PLUGIN("summarizer-api", "step", NULL, step)
#define FS_SUMMARIZER_CHECKED(check, step) FS_PLUGIN("summarizer-api", "step", check(), step)
#endif
