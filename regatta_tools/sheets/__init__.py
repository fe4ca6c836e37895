"""A cell as an Excel workbook and back: ``regatta sheet out`` and ``regatta sheet in`` (docs/spreadsheets.md).

======================  ==========================================================================
:mod:`.layout`          what the sheets are called, how text is written, the state a workbook came from
:mod:`.export`          package to workbook
:mod:`.opening`         a foreign file opened with care: limits, kinds, notes and threads
:mod:`.grid`            workbook to text cells with addresses, and the damage that spreadsheets do
:mod:`.merge`           the workbook, the package, and the state that both came from: three ways
:mod:`.bring_back`      workbook to package: damage, merge, check, write
======================  ==========================================================================
"""
