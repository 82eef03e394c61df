"""Fits data that ship with the package, and finds the settings that suit a machine.

search_space, candidate, search                      what may be tuned, how it is measured, how one is chosen
adoption, autotune, autotune_verdict                 whether it is adopted; the whole run, and its checks
reporter, statistics, predictor_fit, voice_levels    data that are measured once, and ship with the package
precision, block, rounding                           what a precision costs in sound; better integers
comparison                                           the segments that these speak; two decodes compared
"""
