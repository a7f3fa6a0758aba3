/* Stages and summarizers for Foreshorten as native libraries. The meaning of everything is that of
 * plugins/wit/0.1.0/plugin.wit; here are only the shapes.
 *
 * A native library is TRUSTED: nothing bounds what it does. It is loaded only where the operator allows native libraries
 * and pins the file by its SHA-256, and it is never unloaded.
 *
 * Rules. Tables begin with their size: a member is there if it lies below it, and members are only appended. Text is UTF-8,
 * pointer and length, and borrowed for the call. Nothing is allocated on one side and freed on the other: what the host has
 * to say it writes into a buffer of the plugin's, and answers how much there is; cells alone it lends. A call comes on one
 * thread; several may run at once. No exception and no unwinding may cross. */
#ifndef FORESHORTEN_PLUGIN_H
#define FORESHORTEN_PLUGIN_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define FS_MAGIC UINT32_C(0x4e4c5046) /* "FPLN", little endian: also tells the byte order */
#define FS_ABI_MAJOR 0u               /* another major number is refused; before 1, another minor one too */
#define FS_ABI_MINOR 1u
#define FS_NONE UINT32_C(0xffffffff)

typedef struct { const uint8_t *ptr; size_t len; } fs_str;
/* A range of a column, lent: len numbers of width bytes each, aligned to that. Null where there are none. */
typedef struct { const void *ptr; uint32_t len, width; } fs_cells;
typedef struct fs_call fs_call; /* one call: opaque, and gone when it returns */

/* Columns. Kinds, levels and rules are one byte wide, marks two, all others four. */
enum {
  FS_KINDS, FS_MARKS, FS_LEVELS, FS_GROUPS, FS_PAIRS, FS_WEIGHTS, FS_VIEW_WEIGHTS, FS_SIZES, FS_TOOL_IDS, FS_RULES
};
/* Decisions: a and b are head and tail of OFFLOAD, a is the part of ELIDE_PART and the head of PERSIST. For SNIP,
 * REQUEST_SUMMARY and PIN there is one number where the others have entries: the first group, the end, the entry; a is the
 * end of SNIP. */
enum {
  FS_CLEAR, FS_CLEAR_SUPERSEDED, FS_OFFLOAD, FS_ELIDE_MEDIA, FS_ELIDE_PART, FS_CLIP_ARGUMENTS, FS_OMIT_REASONING,
  FS_SNIP, FS_REQUEST_SUMMARY, FS_PIN, FS_PERSIST
};
/* Texts of a call: FS_TOOL is followed by the number of the tool, FS_CALL_ID by the entry, FS_REPLY and FS_SECTION by their
 * number. */
enum { FS_CONFIG, FS_TOOL, FS_CALL_ID, FS_MEMO, FS_SPAN_TEXT, FS_PRIOR, FS_SECTION, FS_REPLY };
/* Numbers of a call. */
enum {
  FS_LEN, FS_WINDOW, FS_USABLE, FS_TARGET, FS_VIEW_TOKENS, FS_AGGRESSIVE, FS_TAIL_START, FS_TURN, FS_MAX_CHARS,
  FS_MAX_OUTPUT_TOKENS, FS_SECTIONS, FS_REPLIES, FS_SPAN_LEN
};

typedef struct {
  size_t struct_size;
  uint64_t (*number)(fs_call *, uint32_t which);                                            /* 0 where there is none */
  uint32_t (*column)(fs_call *, uint32_t which, uint32_t start, uint32_t count, uint32_t *out); /* how many were written */
  size_t (*string)(fs_call *, uint32_t which, uint32_t at, uint8_t *out, size_t cap);       /* how many bytes there are */
  size_t (*text)(fs_call *, uint32_t entry, uint32_t part, uint32_t offset, uint8_t *out, size_t cap); /* were written */
  uint32_t (*part_kind)(fs_call *, uint32_t entry, uint32_t part);                          /* FS_NONE past the last */
  void (*decide)(fs_call *, uint32_t what, const uint32_t *entries, size_t count, uint32_t a, uint32_t b, uint8_t *codes);
  uint8_t (*condense)(fs_call *, uint32_t entry, fs_str text);
  uint8_t (*keep)(fs_call *, const uint8_t *memo, size_t len);                              /* 1: kept */
  uint32_t (*span)(fs_call *, uint32_t *out, uint32_t cap);
  void (*ask)(fs_call *, fs_str system, fs_str user, uint32_t max_output_tokens);
  void (*section)(fs_call *, fs_str heading, fs_str text);
  void (*explain)(fs_call *, fs_str line);
  void (*log)(fs_call *, uint8_t level, fs_str message);
  void (*fail)(fs_call *, fs_str why);                                                      /* then return 1 */
  /* Tokens, as weights count them, that decisions would save, without making them: one number an entry, 0 where refused.
   * Only decisions that have entries. */
  void (*would_save)(fs_call *, uint32_t what, const uint32_t *entries, size_t count, uint32_t a, uint32_t b, uint32_t *saved);
  uint64_t (*raw)(fs_call *, uint64_t tokens); /* tokens as weights count them that this many calibrated ones buy */
  /* The first max bytes of the whole text of each entry, one after the other, and their lengths. Answers of how many entries;
   * the next one did not fit. */
  size_t (*texts)(fs_call *, const uint32_t *entries, size_t count, uint32_t max, uint8_t *out, size_t cap, uint32_t *lens);
  /* As column, and as wide as the column is: nothing is converted. Lent until cells is called again, or the call returns. */
  fs_cells (*cells)(fs_call *, uint32_t which, uint32_t start, uint32_t count);
} fs_host;

typedef struct {
  size_t struct_size;
  int32_t (*check)(const fs_host *, fs_call *); /* 0 good; else the plugin is not loaded */
  int32_t (*plan)(const fs_host *, fs_call *);  /* 0 good; else every decision of the call is dropped */
} fs_stage;                                     /* "stage/0.1" */

typedef struct {
  size_t struct_size;
  int32_t (*check)(const fs_host *, fs_call *);
  int32_t (*step)(const fs_host *, fs_call *);
} fs_summarizer;                                /* "summarizer/0.1" */

typedef struct {
  uint32_t magic;
  uint32_t struct_size;
  uint32_t abi_major, abi_minor;
  fs_str name, version;
  const void *(*get_factory)(fs_str key);       /* NULL: not offered. What it points to stays as it is */
} fs_entry;

/* The only symbol there must be. */
#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
const fs_entry *foreshorten_plugin_entry(void);

#ifdef __cplusplus
}
#endif
#endif
