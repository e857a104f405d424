/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c: `etude completion`: what a shell reads to complete command lines.
 *
 * Each script asks the program itself (complete.h), so none has to be written again
 * when there is a new command, option or key. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"

/* Bash cuts words at = and :, and replaces only what is behind the last of them. */
static const char bash[] =
    "# Completion of etude for bash. Written by: etude completion bash\n"
    "_etude() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} breaks='' prefix='' candidate what\n"
    "    local word=${line##*[[:blank:]]}\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='\n"
    "    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'\n"
    "    [[ $breaks && $word == *[$breaks]* ]] && "
    "prefix=${word%\"${word##*[$breaks]}\"}\n"
    "    local rest=${word#\"$prefix\"}\n"
    "    [[ $word == *=* ]] && rest=${word#*=}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r candidate what; do\n"
    "        case $candidate in\n"
    "        :files) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "
    "\"$rest\") ;;\n"
    "        :folders) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "
    "\"$rest\") ;;\n"
    "        :recipes) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(\n"
    "            compgen -d -- \"$rest\"\n"
    "            compgen -f -X '!*.yaml' -- \"$rest\"\n"
    "            compgen -f -X '!*.yml' -- \"$rest\") ;;\n"
    "        *) COMPREPLY+=(\"${candidate#\"$prefix\"}\") ; continue ;;\n"
    "        esac\n"
    "        compopt -o filenames 2>/dev/null\n"
    "    done < <(\"$1\" " CLI_COMPLETE " --line \"$line\" 2>/dev/null)\n"
    "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "complete -F _etude etude\n";

static const char zsh[] =
    "#compdef etude\n"
    "# Completion of etude for zsh. Written by: etude completion zsh\n"
    "_etude() {\n"
    "    local -a words_before plain open kinds\n"
    "    local line word text kind\n"
    "    words_before=(\"${(@Q)words[2,CURRENT-1]}\")\n"
    "    for line in \"${(@f)$(${(Q)words[1]} " CLI_COMPLETE
    " \"${words_before[@]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\"; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        text=${line#*$'\\t'}\n"
    "        [[ -n $word ]] || continue\n"
    "        case $word in\n"
    "        :*) kinds+=($word) ;;\n"
    "        *[=.]) open+=(\"${word//:/\\\\:}:$text\") ;;\n"
    "        *) plain+=(\"${word//:/\\\\:}:$text\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#plain )) && _describe -t words word plain\n"
    "    (( $#open )) && _describe -t keys key open -S ''\n"
    "    (( $#kinds )) && compset -P '*='\n"
    "    for kind in $kinds; do\n"
    "        case $kind in\n"
    "        :files) _files ;;\n"
    "        :folders) _files -/ ;;\n"
    "        :recipes) _files -g '*.(yaml|yml)' ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "if [[ ${funcstack[1]} == _etude ]]; then\n"
    "    _etude \"$@\"\n"
    "else\n"
    "    compdef _etude etude\n"
    "fi\n";

static const char fish[] =
    "# Completion of etude for fish. Written by: etude completion fish\n"
    "function __etude_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    set -l prefix (string match -r '^.*=' -- \"$word\")\n"
    "    set -l rest (string replace -r '^.*=' '' -- \"$word\")\n"
    "    for line in (command $words[1] " CLI_COMPLETE
    " $words[2..-1] \"$word\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                printf '%s\\n' \"$prefix\"(__fish_complete_path \"$rest\")\n"
    "            case ':folders'\n"
    "                printf '%s\\n' \"$prefix\"(__fish_complete_directories \"$rest\" "
    "'')\n"
    "            case ':recipes'\n"
    "                __fish_complete_path \"$rest\" | string match -r "
    "'^[^\\t]*(?:/|\\.ya?ml)(?:\\t.*)?$'\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c etude -f -a '(__etude_complete)'\n";

int
cli_completion(struct cli *c)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; c->n_args == 1 && i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(c->arg[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout); /* raw: it is built in */
            return CLI_OK;
        }
    return cli_fail(c, CLI_E_OPERAND, NULL,
                    "completion needs the name of a shell: bash, zsh or fish");
}
