/* hardware.c - hfsb hardware: what sandboxes and jobs can run on, and its
   price. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const table_column columns[] = {{"NAME", 14, false},
                                       {"CPU", 10, false},
                                       {"MEMORY", 8, false},
                                       {"ACCELERATOR", 24, false},
                                       {"PRICE", 0, false}};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* "1x Nvidia T4 (16 GB)", of an object; or the text as it is. */
static void put_accelerator(const hfsb_json_value *item, hfsb_buf *out) {
    const hfsb_json_value *a = hfsb_json_get(item, "accelerator");
    hfsb_str               model = get_str(a, "model");
    hfsb_str               number = get_str(a, "quantity");
    hfsb_str               ram = get_str(a, "vram");
    if (hfsb_json_type_of(a) != HFSB_JSON_OBJECT) {
        hfsb_str text = hfsb_json_str(a, HFSB_LIT(""));
        must(hfsb_buf_append(out, text.len ? text : HFSB_LIT("-")));
        return;
    }
    if (number.len)
        must(hfsb_buf_printf(out, "%.*sx ", (int)number.len, number.ptr));
    must(hfsb_buf_append(out, model));
    if (ram.len)
        must(hfsb_buf_printf(out, " (%.*s)", (int)ram.len, ram.ptr));
}

/* The Hub bills minutes; people compare hours. */
static void put_price(const hfsb_json_value *item, hfsb_buf *out) {
    double   price = hfsb_json_double(hfsb_json_get(item, "unitCostUSD"), 0);
    hfsb_str unit = get_str(item, "unitLabel");
    if (!(price > 0)) must(hfsb_buf_append(out, HFSB_LIT("free")));
    else if (hfsb_str_equal(unit, HFSB_LIT("minute")))
        must(hfsb_buf_printf(out, "$%.2f/hour", price * 60));
    else
        must(hfsb_buf_printf(out, "$%.4f/%.*s", price, (int)unit.len,
                             unit.ptr));
}

static void add_row(table *t, const hfsb_json_value *item) {
    hfsb_buf accelerator = HFSB_INIT, price = HFSB_INIT;
    hfsb_str cells[COLUMNS];
    put_accelerator(item, &accelerator);
    put_price(item, &price);
    cells[0] = get_str(item, "name");
    cells[1] = get_str(item, "cpu");
    cells[2] = get_str(item, "ram");
    cells[3] = hfsb_buf_str(&accelerator);
    cells[4] = hfsb_buf_str(&price);
    table_add(t, cells);
    hfsb_buf_free(&accelerator);
    hfsb_buf_free(&price);
}

int run_hardware(args *a) {
    bool             jobs = false, json = false;
    client           c = HFSB_INIT;
    table            t;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_json_iter   it;
    hfsb_json_writer w;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--jobs", OPTION_FLAG, &jobs,
         "hardware of jobs and of sandboxes with --image, not of Spaces"},
        OPTION_JSON(&json, ", hardware as the Hub describes it"),
        OPTIONS_END};
    if (!take_all(a, options, NULL)) return a->status;
    table_begin(&t, columns, COLUMNS);
    st = open_client(&c, false, &err);
    if (st == HFSB_OK) st = hfsb_hub_hardware(c.hub, jobs, c.cancel, &doc, &err);
    begin_object(&w, &result.fields);
    hfsb_json_put_key(&w, HFSB_LIT("hardware"));
    hfsb_json_put_array(&w);
    it = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&it)) {
        add_row(&t, it.value);
        hfsb_json_put_value(&w, it.value);
    }
    hfsb_json_put_end(&w);
    end_object(&w);
    hfsb_json_free(&doc);
    close_client(&c);
    return show_table(&result, st, &err, &t, json);
}
