"""Fits data that ship with the package, and finds the settings that suit a machine.

search_space, candidate, search                      what may be tuned, measured, chosen
adoption, autotune, autotune_verdict                 settings that suit a machine
reporter, statistics, predictor_fit, voice_levels    what is measured once, and ships with the package
precision, block, rounding                           what a precision costs in sound; better integers
comparison                                           what is spoken for these; two decodes compared
"""
