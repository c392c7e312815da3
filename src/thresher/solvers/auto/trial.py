from __future__ import annotations
from dataclasses import replace
import torch
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.grow import grow
from thresher.solvers.auto.judge import Candidate, Judge, judge_of
from thresher.solvers.auto.newton import Fit, measured, refit, shrink
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.wide import alternating, random_start

def ladder(budget, t):
    sizes=[budget]
    while sizes[-1]*t.ladder>=t.smallest: sizes.append(int(sizes[-1]*t.ladder))
    return sizes

def under(objective: Relu, fit: Fit, alpha: float):
    o = replace(objective, alpha=alpha/objective.data.amount)
    return o, Fit(fit.point, o.value(fit.point))

def wide_way(judge: Judge, budget, alphas, seed, t: Tuning):
    n=t.newton
    count=max(t.wide.least,int(t.wide.inflation*budget))
    objective=judge.part
    fit=measured(objective,random_start(objective,count,seed,t.wide))
    for number,alpha in enumerate(alphas):
        o,fit=under(objective,fit,alpha)
        fit=refit(o,fit,t.wide.raised if number else t.wide.steps,n)
        small=fit
        for size in ladder(budget,judge.tuning):
            small=shrink(o,small,size,n)
            yield judge.candidate('wide',small,alpha)

def grow_way(judge, budget, alphas, seed, t: Tuning):
    n=t.newton; objective=judge.part
    for alpha in alphas:
        o=replace(objective,alpha=alpha/objective.data.amount)
        fit=measured(o,Point(SparseVector.zeros(o.size,torch.float64),alternating(o.layout)))
        ratio=budget**(1/max(1,t.grow.rounds-1)); size=1.0
        while True:
            size=max(fit.nonzeros+1, size*ratio); size=min(budget,size)
            grown=grow(o,fit,max(1,int(size)-fit.nonzeros),t.grow)
            if grown.nonzeros<=fit.nonzeros: break
            fit=refit(o,grown,t.grow.steps,n)
            if fit.nonzeros>budget: fit=shrink(o,fit,budget,n)
            yield judge.candidate('grow',fit,alpha)
            if size>=budget: break
        for share in t.grow.exchanges:
            grown=grow(o,fit,max(1,int(share*budget)),t.grow)
            trial=shrink(o,refit(o,grown,t.grow.steps+2,n),budget,n)
            if trial.value<fit.value:
                fit=trial; yield judge.candidate('exchange',fit,alpha)
        for size in ladder(budget,judge.tuning)[1:]:
            fit=shrink(o,fit,size,n)
            yield judge.candidate('grow',fit,alpha)

def finish(objective, best: Candidate, t: Tuning):
    o=replace(objective,alpha=best.alpha/objective.data.amount)
    fit=Fit(best.fit.point,o.value(best.fit.point))
    return refit(o,fit,t.judge.steps,t.newton,rough=False)
