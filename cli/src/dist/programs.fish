
# The program after `sovia run`, `check` and `explain`, and what that program takes. The option's value is no program; `+` keeps fish from taking the option for its own.
complete -c sovia -n "__fish_sovia_using_subcommand run check" -xa "(__fish_complete_subcommand --fcs-skip=2 + --config)"
complete -c sovia -n "__fish_sovia_using_subcommand explain" -xa "(__fish_complete_command)"
