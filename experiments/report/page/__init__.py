"""The page that shows runs: one HTML file without network, made from results and journals.

`runs` reads folders, `measures` and `inspection` say what is shown of them, `charts` and `markup`
draw it, `page` puts it together with the files of this folder, `command` is the command line.
"""
