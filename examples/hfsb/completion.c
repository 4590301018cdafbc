/* completion.c - hfsb completion: what a shell offers after Tab.

   The script for a shell is a few lines that never go stale: they pass the
   words of the line to `hfsb completion words`, which prints what may follow,
   one per line, with a description after a tab. A command prints its own
   options: it runs with a->completed set, and take_options() comes here. File
   names are left to the shell, which adds them when nothing here fits. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* bash splits words at ":", but the names of sandboxes have some: the words are
   taken from the line, and what bash has as a word of its own, up to the last
   ":", is left out of the answer. */
static const char bash_script[] =
    "_hfsb() {\n"
    "    local word cur= line=${COMP_LINE-${COMP_WORDS[*]}} words\n"
    "    line=${line:0:${COMP_POINT:-${#line}}}\n"
    "    read -ra words <<< \"$line\"\n"
    "    if [[ $line != *[[:blank:]] ]]; then\n"
    "        cur=${words[${#words[@]}-1]}\n"
    "        unset \"words[${#words[@]}-1]\"\n"
    "    fi\n"
    "    words[0]=${words[0]/#\\~\\//$HOME/}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r word; do\n"
    "        [[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$word\")\n"
    "    done < <(\"${words[0]}\" completion words -- \\\n"
    "        \"${words[@]:1}\" 2>/dev/null | cut -f 1)\n"
    "    [[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *: ]] ||\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    [[ $cur != *:* || $COMP_WORDBREAKS != *:* ]] ||\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"${cur##*:}\"}\"}\")\n"
    "}\n"
    "complete -o bashdefault -o default -F _hfsb hfsb\n";

/* What ends in ":" goes on: no blank follows it. */
static const char zsh_script[] =
    "#compdef hfsb\n"
    "_hfsb() {\n"
    "    local -a list open\n"
    "    list=(\"${(@f)$(${~words[1]} completion words -- \\\n"
    "        ${words[2,CURRENT-1]} 2>/dev/null |\n"
    "        sed $'s/:/\\\\\\\\:/g; s/\\t/:/')}\")\n"
    "    open=(${(M)list:#*\\\\::*})\n"
    "    list=(${list:#*\\\\::*})\n"
    "    _describe hfsb list -- open -S '' || _files\n"
    "}\n"
    "compdef _hfsb hfsb\n"
    "[[ $funcstack[1] != _hfsb ]] || _hfsb \"$@\"\n";

static const char fish_script[] =
    "complete -c hfsb -a \\\n"
    "    '(set -l w (commandline -opc); "
    "set w[1] (string replace -r \"^~\" $HOME -- $w[1]); "
    "$w[1] completion words -- $w[2..] 2>/dev/null)'\n";

/* ---- what may follow ---- */

static void print_sandboxes(void) {
    known_list l = HFSB_INIT;
    hfsb_err   err;
    size_t     i;
    (void)read_known(&l, &err);
    for (i = 0; i < l.count; i++)
        printf("%s\trecorded sandbox\n",
               l.list[i].id.len ? l.list[i].id.ptr : l.list[i].url.ptr);
    free_known(&l);
    printf("ssh:\tHOST\ndocker:\tNAME\npodman:\tNAME\n"
           "kubectl:\tPOD\nslurm:\tOPTIONS\nexec:\tCOMMAND\n");
}

static void print_tools(void) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_buf       text = HFSB_INIT;
    hfsb_json_iter it;
    must(hfsb_tools_define(HFSB_TOOLS_FLAT, &text, NULL));
    must(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL));
    it = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&it))
        printf("%s\ttool\n", get_str(it.value, "name").ptr);
    printf("edit_lines\ttool\n"); /* not among those of a model */
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
}

/* The values of an option, or the words of a command, by what its help calls
   them. */
static void print_values(const char *called) {
    if (strstr(called, "SANDBOX")) print_sandboxes();
    if (strstr(called, "--confine")) printf("none\nwrite\nstrict\n");
    if (strstr(called, "bash|zsh|fish")) printf("bash\nzsh\nfish\n");
    if (strstr(called, "TOOL")) print_tools();
    if (strstr(called, "TOOLS"))
        printf("claude\tset of tools\ngpt\tset of tools\n"
               "small\tset of tools\n");
}

/* Prints what may follow a->completed. */
static void print_completions(args *a, const option *rows) {
    const option *o = find_row(rows, a->completed, strlen(a->completed));
    if (o && takes_value(o)) {
        hfsb_json_iter it = hfsb_json_begin(
            o->kind == OPTION_PARAM ? ((const param *)o->target)->choices
                                    : NULL);
        while (hfsb_json_next(&it))
            printf("%s\n", hfsb_json_str(it.value, HFSB_LIT("")).ptr);
        print_values(o->name);
        return;
    }
    for (o = rows; o->name; o++)
        printf("%.*s\t%s%s\n", (int)strcspn(o->name, " "), o->name,
               is_alias(o) ? "the same as " : "", o->words);
    printf("--help\tshow the options\n");
    print_values(a->command->words);
}

/* ---- the command ---- */

static int complete(char **words, int count) {
    args a = HFSB_INIT;
    if (count && strcmp(words[0], "help") == 0) { /* of that command */
        words++;
        count--;
    }
    a.command = find_command(words, count, &a.next);
    if (!a.command || !a.command->run) {
        if (a.next == count)
            print_commands(a.command ? a.command->name : NULL);
        return DONE;
    }
    a.list = words;
    a.count = count;
    a.on_rows = print_completions;
    a.completed = words[count - 1];
    (void)a.command->run(&a);
    hfsb_json_free(&a.definition);
    return DONE;
}

int run_completion(args *a) {
    static const struct {
        const char *shell, *script;
    } scripts[] = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const option none[] = {OPTIONS_END};
    const char  *shell;
    size_t       i;
    if (!take_options(a, none)) return a->status;
    if (a->next == a->count) return usage(a, "bash, zsh or fish?");
    shell = a->list[a->next++];
    if (strcmp(shell, "words") == 0) {
        if (!take_options(a, none)) return a->status;
        return complete(a->list + a->next, a->count - a->next);
    }
    for (i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i].shell) == 0)
            return put_out(hfsb_cstr(scripts[i].script));
    return usage(a, "bash, zsh or fish, not %s", shell);
}
