"""HTML report of runs: one file without network access, made from results and journals.

`runs` reads folders, `measures` and `inspection` say what is shown of them, `charts` and `markup`
draw it, `page` puts it together with the files of this folder, `command` is the command line.
"""
