
# The program after `sovia run`, `check` and `explain`, and what that program takes; all else is _sovia's.
_sovia_programs() {
    local command=${COMP_WORDS[1]:-} at=2 cur=$2
    case $command in
        run | check | explain)
            # Options before it; the value of --config is a word of its own, and behind a `=` that is two.
            while [ "$at" -lt "$COMP_CWORD" ]; do
                case ${COMP_WORDS[at]} in
                    --) at=$((at + 1)) && break ;;
                    --config)
                        at=$((at + 1))
                        [ "${COMP_WORDS[at]:-}" != = ] || at=$((at + 1))
                        at=$((at + 1))
                        ;;
                    -*) at=$((at + 1)) ;;
                    *) break ;;
                esac
            done
            if [ "$at" -eq "$COMP_CWORD" ] && [[ $cur != -* || ${COMP_WORDS[at - 1]} = -- ]]; then
                local IFS=$'\n'
                compopt -o filenames
                # shellcheck disable=SC2207 # lines, and none is empty
                case $cur in
                    */*) COMPREPLY=($(compgen -f -- "$cur")) ;;
                    *) COMPREPLY=($(compgen -c -- "$cur" | sort -u) $(compgen -d -- "$cur")) ;;
                esac
                return
            fi
            if [ "$at" -lt "$COMP_CWORD" ] && [ "$command" != explain ]; then
                # bash-completion's, where it is loaded: as if the line began with the program.
                local whole
                for whole in _comp_command_offset _command_offset; do
                    if declare -F "$whole" >/dev/null; then
                        "$whole" "$at"
                        return
                    fi
                done
                # Nothing found: `complete -o default` offers files.
                COMPREPLY=()
                return
            fi
            ;;
    esac
    _sovia "$@"
}

