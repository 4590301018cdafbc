#pragma once

/* The plan of an agent: what plan_tool writes, and the reminder. Private.
   Whoever has one locks it. */

#include "tool.h"

enum {
    HFSBI_REMIND_ITEMS = 4, /* that a reminder lists */
    HFSBI_REMIND_TIMES = 2  /* in a row */
};

/* All zero, but for doc.alloc, at first. */
typedef struct hfsbi_plan {
    hfsb_json_doc doc;      /* as it was written, an array */
    unsigned      reminded; /* times in a row */
} hfsbi_plan;

/* The row of plan_tool; its fn is NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_plan_tool(void);

HFSBI_FN void hfsbi_plan_free(hfsbi_plan *plan);
/* What plan_tool does, its keys looked at already. */
HFSBI_FN hfsb_status hfsbi_plan_set(hfsbi_plan            *plan,
                                    const hfsb_json_value *arguments,
                                    hfsb_tool_result      *result,
                                    hfsb_err              *err);
/* The whole call, keys and all: for whoever has no session. strict as in
   hfsb_call_opts. *result is filled in any case and must be freed. */
HFSBI_FN hfsb_status hfsbi_plan_call(hfsbi_plan            *plan,
                                     const hfsb_json_value *arguments,
                                     bool strict, hfsb_tool_result *result);
/* Appends the plan as JSON. */
HFSBI_FN hfsb_status hfsbi_plan_write(const hfsbi_plan *plan, hfsb_buf *out,
                                      hfsb_err *err);
/* How many items are not completed. */
HFSBI_FN size_t hfsbi_plan_open(const hfsbi_plan *plan);
/* As hfsb_session_remind(). */
HFSBI_FN bool hfsbi_plan_remind(hfsbi_plan *plan, bool called_tools,
                                hfsb_buf *out);
