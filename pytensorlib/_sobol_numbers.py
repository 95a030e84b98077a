"""Direction numbers of Sobol sequences: new-joe-kuo-6, the first 1024 dimensions.

Joe and Kuo 2008, "Constructing Sobol Sequences with Better Two-Dimensional Projections".
"""

from __future__ import annotations

from base64 import b85decode
from collections.abc import Iterator

__all__ = ["DIMENSIONS", "rows"]

DIMENSIONS = 1024
# A one, then for each dimension but the first the degree of its polynomial in 5 bits, the
# polynomial without its first and last one, and its numbers: the i-th is odd and below 2^i, so
# that i - 1 bits tell it.
PACKED = """
0uf_i;6h0z#U!ApkrmyN+5lYzOWApYVc^XklxR)3G{-R-)3Xhfr^g4|K4%l=JVzYki{~RiV@En<j;Bs7@#j@pqsMa*G)H~lN
C$(aOQ)2~a)+mD181w2=?BUZ)JNSbfXCsm_owZ~^9TB&+6Wy#nU6>-zxDPAEh?68h)pimFo<6L7J|rQ&OQX_WdxKQ$Y`Xf>B
w>DLd%GUOOkYGjqA^`sHj4}4hX^x)yoLa+#w`r=NA9nNc2+Gs7VORkiBm7hT0(5AreFaiIxhjBGF;bXY!GeRS&dVNn)t%Ioh
PXd9r}-(rMqOn2pId2G73ol%1{TY+`~>j?1R50VrbDzWF4Sr&Mkyp-PHSY5<_6N$VURds450R2e|2TRY4*|1_^qU$JTWS;++
Y{n;%E+tTwOmepfjTlGuOKw-32CGha)AjA_BDb|eY>575c|M7&!<G#|Y!emhZx$!A81s4Ylo|(~1x<+tKJzL)yL#DSy!zWHt
V8z?ydMULk#iL?W+dgH5=MrvtLmoGQH}lNXSPq;Z0uo5QPCV~ZgLtQDnQc&Y)454Ryfw+=ts0rxMDm!Z8^UsVzs@0fsXa_4<
Wkt4%cZ5bd{2%yP=9x)(Ipbjn-lwANe8Ja0!~6pi+hzo){1ZcLwTqt8V<jWlC=enONYYL_Mw;3VGx2`6gSFx8A<w*hzS43D$
j~h6~>q){tAjQM@Ya<e-TE$1@X61AE@T2dY5dvbsla{62M#{qx){>*XTNwhLZ^y#-;+1n|<;)CaO|IpXb%BqH0WV+=h1zg-P
J(+AP-bDMF-WXKBP`D*J0%5d!3;uNTN;CC604HZOBqvT~U9DwQ&+$x|&C-bi@o3TS8xIK5=0PCm;AO`(%1<ylkn&{kzW`-Sv
{1MsKm%QCZ`rWFY@gL!u`BB4?Px)r#AR7z@}+IH<Kjk6!+V8#hjAC?(49}+4~lX3WaMTJXC-`rn8;;G>l;4h2<)jvNrBPQ8;
sF9jk`-quUYMj{#Y5*#*4TylZdpTB?_ZZM>wW{BRiBgZc#b2vmCa(WNtXb?cf&Oz<j^LiW?dQ_61%*VCb1qhL;s<(o{)*9*$
p^_Um0E7WHvF=aD^wseY*B30YbU-t4SY(iiu|PiU#peAs%-SOKT^2cC$)@>09PhmWlbi%D(qV$=Y4QhUe_vqiizi|^7GMuGV
P^*12B%qGS09H{l^bZ1Se9!zeRP_J9vz11y?j}$z;^IEEZW%WIUL)n6Qoj^g7qO6Kca3q5^K#HfZY%jnIy`yI}?_IPWRp8>Q
|Fu=d4@*`5G^>cnWrA=n!8g^Lo3&~eUI_SY;=zZ@6zUGMI(QU)g2G)3S-#fJoE6hqOrD;eC(d$8k-HLPf6&a5WI8-%gImecQ
htaYl#GtJVwTJH~Q9Yxk{E)-*JEPDKe)PP%6+_D>ltbCKD{Hn;CumKJ0R|o4PfVl~}8-b-PlqcNCnYgF0vUj4{1p8_C;>qR$
D~;M><|`<fWvdR1ieW6I<r!$rV`>1hpr&_uB8lJX%G`T{2vfMgYc6W#UN!!weyqCv1X3~Y1hBIIXW|RFb|ZSs5#qn!AuK}+F
~_l$jFlyltkwDERH6%!KC@ffHcKL)YZ}eZ<+Wwp7<Owo;pP=I6uvPm>}yLyE=rD;v&t+K7zHD2GS9e_{3gw<#cMzeU3XM%D1
R*j0cXTjC2CT%C)7qkiWFNC(5NcBggD};OGOz*b%{OJcC93lROWvvmVC6qz1thh1y{<`WM+#Q-%8Z0PbLU;9&o!1EkA6F0}I
9F+_ee{jpz(Pb6V7e23ONLYBnoVt_d4>qNc$uQ#3t~O>ZDDwNyO*G@h}M+SQd-t)L@DkqcImK;`zudy=hc9=}r&i?uejy=^C
jU+koU*GRP_Zzhh|YhBT9{q=??vMqSMn!`*lD)P1Wd#WvW@1yeA9cUyI_+_RmVIFtzAT9gyt%!V1e9bXA_O@loVRe5wzY^K?
DZXz)6|0MA5=838e*JANr6yPlC0k&+wy=g>OQcNzlG^d{lYXY`!wYPThc;dPG5syKv%VugPOb8``}2L3?iDFY+&{2U=Y3nLi
*aeDN<=+DkgdrPK>#3CA{MtP88HQKUPb!deVCO=^u)%?cHk_f0fi~Ot=>L(?XEiK@VAqVBoZi#!y?|<{bYjjks+&lo>Rc3b5
75#^UU`kd3XPCx7$Nf!SR?0Qs7=}(r*9U&kKQ#49Rdq&uA_TvU*WEkdThJJ&%Dj&ZnvR;;=~0sj*jj>x=@BwFtvr^{zFUDQi
Vxf^fLy6UQ)!&TyLKCZemB_=vAdkvFe<eefQgu1oR;EyMDsp1Cz;D24-v%v$8({)1D9YXggxanYlofeBnLUz^g@bTA|QxsC4
^GZFjAy5?nZCl8eCo2!~?qW+`27_P2rHy?nO95TSU#V;(m*tcKO=Rr|tbD0EPi=Ne5@6u)qI<A3e6|XA3kl4B$QCHA%rFQb@
?2>3G!X>h+q}wn%z7i4nE|!HCRiShsFuH?TSb)=#zWVAooJBMaRKW|XfG9wy-oSURtPLYFw6y?ay2UsHIF<6VGV6QpRa|$6t
*fphJ?`2;wmh!Mb~KL29ae(7K0y6q2_sPo?Lt<79Fsx7OSe$lZ9_GsT&~{NBE9;ShQ7OzdIjHW&6}F;yF_x$oHU-RyJ}KpLy
M6LuJ9r4{AC+nJiE@YgXswsT59jDo^5p|7`scrmh@m5tu5iN4qzo}?ZfP9yhF?uh>AM)%JDybqi7BOA4|nw2p`cw`e3gasI-
NTxzC2Yantu>`3_x5@-^g5WKP{e3(0&4vf=Tl{4Xlbw3O4eVs^a0H-5;z<vm*SiZU=k$*>=5&wH2)Fj{zguRf_la_=yLzP$k
Y*0ykY`*QS>>deVkPZo>Q!!r-&8yo8{Q7T~Lo!DY>y>`KwhnFnSV)lMcTFe7OV$0i^I$BX7={GNVP{*Q-mRTCT@y*%Em^?1h
_*8Q`pULGi>*E<e5@(WDg|C?6^Q6afUpBsMtz70k!rnUi;a2U!_xamP?N8j?BF6ioueO8(JHL=a;=bqys=^ff%zFF~cNPxu<
bG@N2_ni2Q&O0(%Y^uw*aT_%zc$@p9G6m}68$ri`6l5i6$|yb9<7DRo@OuF#ZwyLU14y)o5_bFUMu6;{+&uCP3QYV3;emm?4
-CwDKGTQm2@OBn})zr*!Rj2*?rTVFd9HN&aL#oTo+6Sx7;;@xZYMED*^SVtf}neXFkNhn5*?cD0&&(elRpUSTAY+f)p4G4!f
QD*ez|$%X0)9yUSIS1ZSh}!5(YLt*jkR*QGE>;>9#e8xi7(EEBMh60M#8MFwL9JZ|q-zpl7H0Kr$aagiV9841a-SP#h!B%BQ
;+$<KWG<m*z3t5@-1{GGN{@(K<@hHKwXKT!eW&{@BuyzO5_#uwO)Fq4^@-gAGY?7le8wfRp5%f$7*ZS(hH*WKXt27ZPg0PPs
sE2s{Ag9jECSqf@o+kiDTZ0M71^Gnr%LCG~!hQ`2YL}1?K7lZ<8Zhk>_Z5;_j4TUz$OrNsRoyEKFR=*|N}f~+D8mlwME<sPG
W8-b$6xFT2!L4H{wy*Eni5w`e!Z=u4CCf~Zzf<bjbg(;v3r72OhDiYu+tCK)OwjDmOsol0|*gZ!dm@TOAci%39+UdwH{W(qp
{=JzV$|A$}sA0zUuPc?KJ&NKw<xW>x8&B&^r*u1wK|jFAaX8#5NJ#*~HD|cU!R&l&U2tEUyzS>_yngltjiy+%h{6o^w+Q3IT
I^-o$kz+jbdDbCV>oDUoM^;P0`XjVwyV!L{T|6QX466G~OW@&6HizaqsCEa-kscO`7iu}5*iB94Sz5)<rH(?J)7Yy<KTyB1D
!Cg{r_6^Rzb#j>sJ&<n)PY%z7=av3cv-67I!UBUv`f!hymXNwoCSJp_?*2d9r#tBBD_5^R=5ScNNp-&aF+cS)Z%w<Q}1JNuC
5?X5+V?>m>J|d#o1jeKhd@qsBa;|8xuL^cWFXS)|wrp`*tj9kF1Q^Ei9A!K9s<?;X!#c-8ahIEGJx%amG0{rL)j-lueCo`1S
17jf0{kdda~>tNk}O|!Cx0-<t){Z92=VDk?6K_X#Gq1ta4l_Yd*tth{f4HB3F{vP>C4n;+sD*&$X2J#(9`)jvS2b7Ri@T9pH
ub942c#aJ{P;8n~ggnTkwin=A)W+BFMORc_kIryIJWnJNxE!G(?_wU(AuMvJ4oyq$^hgB-dq>n70!Tx)#YnG_+JpPWeA4GFe
?}&P@*)*%Pdnu-FeeT>u56dnPUiU5>ehFIiB@u@~`;@xP!HuQG2TI&64)RQD@PoR$<O{i};xPwOW?pic6QZM9vh$>v*4x%y*
_>tC{ll~-iw+cnV-tfIX8D07r|T!$Md${rk)_q}(Ru*zvlOIi%Cwf|bOqWBGY+n`Rb|BS5)1J*NfB`@pqD~Db-9r?-f&@{^Q
!dwma7CeRDGQ#6h+((VZRIO~WHNjbR#$UR-vn+a-JZ)9HgBOa+S07;Xevo~}*D~ZPLX!0Wa#Q9^x@)z*&vMTvPg^eiS=0x+^
7<N-%fYtzw<FBy_j$7P{$0sHzm1f~Ou$O{(-^G$Whv7zLXvCNe~;^%cFY!+*h7V>dLJXR3DYOy>toV_aID0{Gn|V4VnZSuG9
2nQzx06@tX|BYeHcsDY7k&kGbws<Dc(UlJwnXOsl++tluP|YTQd^niKgGMJ_E4K$;s}bmQa0Vl(RFDR^(G3j~4Ch&n49QzNj
QKwPQ3G!1pk@s0(xg%_GXWdIW79aBVYCvZPf4a08t)Y}El#&t)W)57eVIYZ?K0JXir$!p(KT9!qQix_}HbVN)S&Ql&3N2#nZ
+8lppW;-4d%I8$`83e{<jjT+7wmI{VWgi_7|GmDz@Y!6-fJN8WEPp2qO*4Qb$J2^sAYDcs!Rpl1WXV4kCJ2^5v`?H+ZAtMl(
Q1ot$=;d{5p&+T6B*Qz6lu3Yb6!TcJ&k)0o5)2234oI`c${$$-B`K(TtnzbC0ScaKQfym2#;D_Xzc?%1V$YaChG_9vTeNnw?
u4tZ4kn;r$4vX$h-?YKdApk{KO~&)1CUHaK4#Dj5|W&}SJgUq)k&Zy!Np<+XAHfkmdikB9NJ0L_^`-_e%66b#Ac~&2z5+p`R
xNMx0jpUJ$a3I@frs56gDDbohqe*TC@>VI4Vr99-i#Y`)DIU=U8n(;q8G5;LuM{kE7o7hDi`4DWIjV-vxLE7$Bmv8$n#S4o1
r7T3WSL#)9rfp*v1QqL6ihZ3W{HP2}^`#P?zP+6*dsT?cBuk>Dkiv>7kIlg9@-d7#dhXgEb|d)2PJ;otd6(0M?cLa30y>zhe
cp$whsroZ@E;SqYvLMnt*yGLGIFM=Ybgr*HbW63c8Hvbas34iFtVQXg~uw^8g6QK52IENo~+8~ECC~!k@Uwm?;e`~5}S&I}&
e58fPiRn_%wZ_U{GU{r^!+tTLc+7NbNZ$T1avHls60hwUo}rLo@;J7JUr=EagckrPqlaw_?~hMN21iRLWp0`q?D}HZF5K*jg
jlpV0Kyl;0(6%37)WSw$WlMHxSseNsoK!y<twF-BZD5^COM(rM_B3br?ZUHy%R&kyjO=hQ7bz5<hF;zD<0mIdSxCb3{4Nv-J
W#}dA5!8_ZlIBh{%UnurL0qgEU0H(_r+1qV1?G&uESEV2n)__^3+Ch|wOy<SI2pXj9uaRiZ+CI+PJLJ*(;Y6GXI%DvRBgoNa
GPc8Pbr&F=IP66eGE%@e|8?WwZ*C@b4A8Yl5|WEM>|zFPP6G*J?jhl_zwvs*x&Xr<_X>4An@!mtJ^(M=b|XIC;4?yF28qO#P
Dda$ROWR2cKMSTOqYYnaTzC6PAi!fo~8G!UIOK!N$7j>ahn1BArkf@UyFL1Hc_R`FeNGg)FUwf|GE4_xQNIW!X!7I8eOBP*c
WI+DWlO-VN8V~?vjsH=jD@O>3!#?(qQM^k=jwMNJ70SYupgP8lQ0<z@`^;(O`?pOR!&`FP91nNU2I-nM=^lmH)zWh~T@AEuD
vf9M;|)plD644SY!frB1_*t^c>K}BXT)IYCIui5<iVqiyR>yq=bXc2DDy`ulurSX3P5GX>*kJ(Dxg?s7UiX!4{aSrVP6{|V3
-mlZrVE;adY13KoEv`L^O8o0tI>3?^OJOylC$EX(rq=CpF%5MA7i)tU@l*RSQr%k)!R-$wZIeLtPd7J4f-M9dYCy>D}SLHjp
UAVkw3B*$20)4Ir6KNsDT0QBV{ZnnCxEJcJ!%^(O!?G=z#>^AXaZ_E`&yX$n8q1H~eR&ah1a(jHBpLq;+{!m6kJq*3VXQRhm
z;mamVNUXl&)^()f!^}f=k%qU7qEx70R@LK;BWbEFrwKzr^tW|dNA{sFr?j+`KggD}kVF4WgVK<!%eWb7Cg)PF{M(D}Gs-&B
PEsz5AS|?mpZSTTw2H@!cNT{UZ~5a%ekAoXu<kyTC5NVy2C|*_Uz=Yd&D9MiIa}zzXwRQlk+xb)zHr5&Q5m$dJ~}j<eZZ%O)
GX2csgY?ye!_-1)AE4j_CC^!@e)?#o9e3+M46==Rb8gixj6wYd}B&O)Oy8#C~=)UnWmJo|3}<o+SLjhNUbTsqe!tFJlbykVc
Jzb-bM&8;C!$IO|+`BxL8v>G_E4T=xJD%1~@bQ*e2L!;L^CQk9GO2lH!6F*`;@}Cv7#lHu~WB+e;2@4|BYRI-i>n=9Vv@zgh
>Z$d>NrO)RRkzX8rM|F)fQ8d;RSJf7(f7(SR#G_%S})&OVoj>Y_;X>0fpt|wL6!ZKQ*(%zbFe-P@F`>0~YrNq(w1beZHKL2c
cOPpkpXn~pc8de(SmtESSx*A~$$%;h{FIQ~ENp6V*l~WMfU@hZEEaDRhQk#0Tz>{oaO~edXAiu?FgdOBGA2q`Z%AhpU7J{jT
C0x==3lZt2KP*t|rE<G<T->Wnltjguvm8M4!6!zUPbpg?>xyRA0^sd3&4rHb6*sZew(r_zi=N=l)SIBw)=;$0{jMKwzgXk6o
%v~=>!2vU3jZ7jF5J^YftOunsjhYFZ*iuQ)Kw$XGi~q<fy+%Z{P&^VsrLZsJC>TmUCDbDS492!DlIj!aV&sI2e<TaP8w_7ar
v)`!;YMZCp6e|fs25!@{D#^<7v9ed=2(bW_B5$lGA!xzt2ZLX4A$~t)~*Gv~|CddsoUX(@s#@CetUONk_j|W}NNG&pkHmUNa
ZFZ8~u|SdqK$l%MZ_T6JP72w+%4PWyu`H0y_~+w+$oy-9=kY1-*-nASc2jEAON)43~ztH6zI$JsOCr+8WUX4g6Zv?fO*PXyE
54{(USF}*kDo=5nLseRe7g~Da6Jpr5JaI%hqAJN)cdxnGck(b~;uBaKb_}IU(fms*^O$(E0@~{A@G(~8xO>vgf?^OIFz{QoK
GQB0I?(*nd=?0xm4j~gy;N4jvB@uTdaL1OQ9Zz6NObYnDg-%UC%aT*Rfs8}{^kW)<`ToO^ThK|XeZ(~cUlsvq81kb<-im4rW
g37OgpR3F2@cd9uWyD$)c`)dec7lyRgfA(z@7WCuX9j}XRp`DQ5ZZ~q$Z)5*{w)QpDq}<IITmhE>#F;psAMXiQ0%w=N%{ycU
{|7<24m%W`4RdWZK1iWNIrT+n?a7c?v!!#?)WFF*x=ErJY8`WvI-)2iX^ZLyalD!%?djN}S3VfCvdoMx%KfUMzv?otml=jYk
oBZC~B2AsPdq+K!zIi9@(JcB@1ZH6L|d)lsi5$jL{)YC<?x+!l)Lmuu08)Q8`zIFPo1d_$&nsStR-qGw5ol`(=lQZ+)oeb$y
3W_UaXq^$yWw{ClWY2o*+NvB_%#YEiomJY+3llf6X3>)T2RLNI0C>`wFIk4Of&12naQrsnBE$ZgbF`dxVsv2!)!rCUDa%<(O
cNw?@)0^}Rz=WGp`f>;dDMrVYlGS#m0Pqx8y?I(W%&#p>no>@EqE8_TLmgU~<L5wjUI$}k9#6G3;tX^sT(Z}Kqe5zJ@{%WaA
DJClBQVt79tjSk{oNC6IyI@oHnl>kvvp))%u`dYXh*%#&N2A|%yy^GNBjwyMPUJb?JZBN1+_p>+WDKPR@$I7S4_4d40~3{Ej
2;*1OM8&QFO|GL28F(;@Hk*y1B@Apw$pfqrk{E5i2_l?W!~D-vonVP~xGF`&4QHG+JaHG}(z2CaEznG?RW2BEeX>?NdR7x8v
d)9sL*`+NST$fstpgD|_PjwN4+;{{Z;HCdD7@YM#89@yQ_Xoh@K4)jqk47%^!$g)HlJs-!i#wVy&gy%&nRRZ+GW*2cSiSIg6
us>h}SOOFDav%o|xRxE*_0v{()2r}TBt$s`hg{h9$0$?4rTWe_nulwo`Nsg;(y0OVUI~-PAWH-pwd4Qk0`ewIB>Z(Pn0MQHE
;{O60^q~7zDR3oVh1~6fisk04j5q&O|KS1k1sjc7D)on;+=Ov%$S7K}{VGERjg?+)3?4OR=0yw+9vix4T4rj{vF2V1(~}FPd
HmI+ueN4g5oxrL>~*VbcP2fR3Pb4XqH|XKfN2>F5!2V@ME0%_13|H)5HDOgbq!p*1s#-!={CiA5}LW8y}`nBnp%x5?X`8ch*
W}7I~diwFKX<or%SGSO3$k>O4aP_HyIg_DUj<2Nvq{8NE-)glwakwvse1aMh@kQf_7m>rm#Jn9obmyi@Gt*4PgxpUa_mKcx;
MiTEe9>@eoSDz*t7<HHE79>K8BjNpMaPYY*KJ$JR%9PI<;6)*zQoD{W-YcTtA9tW2{-zw>?W7MxKlSm0R=gqm>mF8AK{vMN=
H#D6J8zV<b3WNx`NHZ+2?+H<Cw$wA^if;D;{uCm^>lx&sgPQIixjE~c6E8s;S4pXZTvkW}eUOC0plu|+5juX+W#NjAK%|01#
L(IEbphl?%iZPgs?Q<5hUD%+G`g?q!t9OlO3c_|($#m{|y<FPPW=<`9qxuUhhM+Z_R6>v7RVl5oBaUlBf6LFh_(BQf8M4-lv
a{*7`W3hKt_7_qn9$z1X@AQc_S;%qLc;^E550N(D5kX8EkjGUg3v6Rq^)VzJ&T0@oB!$DyxP=9y4nE+DGGze;kB!6fl!ev4g
BKROKVy8-C;gA3Mh#9gx0#Xnq^~AB=AWo1+9qxE>2FnyL<X5ds`gHJvEv3`jYYhR<@Z%C@2ZEqzBhdt!-CsK?MYSfdM+sTH9
Y?7zQWUsGE6cHM~)y@S+n$Q*lfBYkW%0k+h<WmCIW!*8VzY>Oue%B@t(Rt_DK9r#xE4jC+WaTqn15?8WSx9vH=jxKdn92zA&
BMch<PaY`tg=pzfBu)N@!<dm$+hrEGH`;AgH$=p_P_Z2)(0@K}VmdGm378hP=ZCjStE-VTVe}{43fc9~&U`x+PJ+6Uh*gKP4
)ye;`bKu7$(_!|yKlvX^Rb-DZ(YcLufVhkC8QAp<aU0s{Z}}s29b;&gZXmVOpd`*RS)bFCCRuB$!x_fr_*DfBp{&<gn~cifK
Z^BvHKDG!d9qOnzNwuvA1htI9kgj2FQwu+S$4bW0XUooE@0Cb>P>g!ug2S%Yt$8q_uBAX7kb4nXl;v0kTu~j*kjwu#-?B?_-
n)v#LpmKZ}tjEEZ2+JoZ6=9l4HZ8t*<@-_)d^fhjZ<wD_(-&Mrhm3O#^A#w!JR-r!Iz8<-ho|&3a}H^}zOl;VA|~n)QRy3mg
)EbKCm`HS5fXUjbdrN76)!YuRUMe?#Psu77B-*R-gUKaN$6ubv!juaxCe2WS`!3u*ZCUrE$*Khe6Ih!iV^zP}BZrz~mtEz%L
qeSzr08^#3PY0rpS{O#nL?LJ~5lF@TD`<JvM?uRBia|oMj`Ieojr?vMp7-g#0_Oaj><O#+1T`y6u^#R<f4x*DAdffwG|Iwk2
uJE)+LH(w{8GfAWc9*}KXhki6rf_$EnH+Xeb70#6o2Ms^qynvj0IfC!@atM(dCYC7A5Cl$9KKVX)ojH%H4xY*^s@=C5r38*>
?yEk(Q$65n8;b57*k;L9Nu;cHPQG-?>52t6-Z#eHRr5s)=h+nD06OrrG$40HX8~Uiq>l@aejac7d94<8Ei@C*D*BLj%+Wb;|
m5h#_QI-5ZGV>JBLguQ}oNj#jw&T(^E#{>(StMdttJlcR+2tvCJj7#>0@-5GnT0_@4m4jfZqf@I8sch2ZbB+YnQ<F749SSU$
7xwjuD5<;^zXS!i?tY)vTmT8_p0_Y8_0*rW1jdcx_rXk8+4u}p&7^;k`|cz1krV!rmE8TMp^+g??M#f>e3hp}Vq8;`xsi-=C
5MnaInAh>s%7rZ`8)qSZ~V^dbPG<3+r7)6<5i(@uyYFh9%(QvPD+hs`D+s8k=N({=t!FbKF#Q}2@xwopf+&Q~rlT}fYUEFIC
+~79HZRM+TRR`9V9lh<32h~`oAC!H3T9Vryv?7+T#M$TRX3Mrck9c_T^{*M{NHc7FiRX-UV-7>Ffmqo8;@y0@J6eXy*EO;T+
B$Wo{Aw9U(+gxBR+Whoo!!=l5N61BW!C?<xqndY2F;N$^tYg*(73&^*;^xm>@lu0$SGXx2{uV`X&%NQnaKDmxonh|Y1LG06#
g6`q}eRZh{}Sws6Ae3EwW@fSsl3ucW|O=`(**tu^Ux1S1Te~rpiloRES8d!aGy9&6LZ(Ne4>pB6{kn+bQu)sNTTa|NNN6HdP
s4qIv!@a@}^1Y^|u+UgNpC{^KY7*<I%){_&NO<KMNhvcl)ff%rNJwSm@qWv)x_dx;C5U7}DH%V@_2tdN&5Cl4bnmpOh#>xNk
j<q8j5Fn3FJHd-Uo+*lSiVviJ~>|zmo=d1&4%eQRSFN^Me4?f1(sJKopBt0A0B5N(PU5;MyM+ukG{sfz5=*dnxty~Lzkxs_W
S%rtsCu<Li@wBa+(E^)0`RcYjx9ZzEurxM%AOW81R4O)iB~DYgyelaVP3~;)GPpx)l0jC{@s8Q!hHDN1ObM0>9%ZxC={cJ6k
kA4#WSeKl`iEBk-joh#y4KH^NFSux#EXmQmQA0$<WMm2USBI=c3VHFDwJ^)LAX##Pqu+5bYzQnV9YFPH*E%zJH3f1hs5=^-r
5s}S9Yg}of=6zVYERlov)oRFub`2V`!LulDS<r!868HM$vz}HE2J9?Xy50?W0FWR3W>~_V?&9TSs6#uITpqr86x^HjisEgwY
q*HISE-Z6TvL*Nvdav89~W+DU6Elg5OXks51hw3u0dK-~Y=#}$FAX-iU%>>#mBnUlkY((_7Xmgo$<t~`USrb5f^7-c61D&zK
>O}Pz6ntt?=xzxb6oZII`uRU&DyKCKTJ_4|^R>gwOW5M{^hQXvuuqhYx%n)U@AMs;9O>hwj^`0|oN<ayipO`vKZ3gDl#`H-t
Wqi%AC3(%MvOi`i(qi!Nqt2UDL|VMIe611rls7i1>5CD*7aPT>;7x5;4;=~+J(lkYi$>bE15MgzpN~7x<gK-H7vWk%6A9rR2
jgn}<@sNnq?jK=fo9fsw$dQU@9w37%I&QMICuv*Z#Aowj2l~$HZf~LWK}QyC^or=M7=-^R+7ZEeQkAK>AbYAdFt6==GyEKWE
htaF^oV7(Y4~cn1<+m2=L0BBWuzf;o@S(YSBAthS#_bXjFyc_BamGEwBp24-XWDexJu?TVScfXijQo1A&CZw!^}lTaq`lqW4
+oZHYLhlMs=&#nP96+ZTODE?_*#j#9F%wmVMB@{=VfYi9_{Y?B(pmQANS@Yh@B*+WW|VkK1YF!WYUvfP|8C_^XJI+Ge(XE-O
AH9ic@)IgcG&b9i8$d8s&;#*&Bq(I_1xBp?W<=X<=O};T}cCdF=3=@&IoizAX>NrFx7E^0&S;*f@c+v>5$cr}HEO?(u03w!a
l^0F6o@I6QXmWp+nBkjkRTWD;UyBD{V%Ij@OCTH10RcNyV~1_K!KttE4O?gU>RQ`^_K+%t`Uf3%xTUubQ@u??eIGy!UQ=#0^
K2W=1pP_JswUirceZK!gE5VEG3~ix^!MPXXT10rc-wQ2$nGhz6EZP_;I`-;W3-E4I~QpDD{axUV&@}(+qd(Wc-yHK0GxYDOi
%*mb+>RP@~$vLzO&zLTW;^S9-=2h7}>=0X5K7(75gV(8a#f-t-Pc1Z-+P5Hw(kQ+j)!(RMum^fEO&7w)AiZne5|8V>u0+ZSf
T}W6Ot_cnahY+vg3>q+*dSi@0dTx6soye0$nQeIX))Z?AiK>I#AkMJMyN-*VIy*t+%h8KdnjzW`%ZZ6qMmrqq<%e<{cK2Duh
px2)SY0B?0F-8QgR4L1gE0U++U6{V3|_5rBe3+<`RdETIVV<OSG9BvCUT6t9<WAS5fOaL}oZ`479Q;KHb&!1{%e^;7BP~)w_
P{5H0Kt@QH1HqexoGY1*OxV|CHG(${0IH0IVfmLQnTl>48^7GUrWoRA?1<b^JDc2ZZz;@>#PPVWeTsc*B(54)fb(&8X%GbSB
MT9pDrVy)(@`vNH^N9eVok<;EYG%Olr!IBTpNxFi5jnlRG@oAShpTi>WB%TOy}G0=x#o57z#QL2TD1}e%ydJT5R<X-ZT0SeY
pn>^Rzw^0}DOVGjbORooA^j8?X;GR^&+p!TccQ_Pf>gZOMzY(<|BzCdd!kTa@!&dL>JAOR=n)H!RYWV@$5lxEQ25Zd+^_?@E
$Zm%hyo+`(V0L;@9N5mGskxr8N*Z2)YtdjWCVb1Wq7fPCC1<l*dA=7e+tvY9k1YQ9%Z%|DIc`>uITq)QeXn$7Gr#U*UpC@2}
XIdsT{`4H9qY14>qb3E~dOqpGyu;WJD>9kPXXTNxL+R2Hz?t;p`oRnt<-7tf5?D2dw_JE2iDkGNX@dx-s0`7VDl_>4dKPDVH
_X+Sc0<qhojR12b$Zv^_wp6!8)a)`tZ<N<5L@REO5&|J}WYscM*UsH2lvEKwa=S}!HG#TaT5-4J=<|9feA9Hn>qXELh<i(lg
0|_HU))G)DI2kFZVl6yBU44$V1pch-J7RZ*A}5mXCgLS6E{%|5b2WZY~`nX{BEvJ)ftH)M6ll#;N4&3i4~3jy9|t>DZ0!M*a
x|sF`5E*Q+20Fy>R?7;g+aI2J2M9!N#q4)ant%4c7L2S(*Uj%bepwo32C<n1>m4UoLmXw_PfqeU4TGRSS)|ZobA;f0S%=NgL
vj-H4Qq*f<dI8nUbXyDEU`pUJUG8>Qx(c3VQBQ_Qg*_iONG?AK@;+8`RG^aErq+46Y8e&A3QR(us(wLZ~hA}iulVy6MOYZvh
y5^nAbs=JVG*q;Dd5Zw`>Bb~n8vYW<Od@@Hg<O=n>Zg~=P#*BX&amurH;uyIhja{qVx^;%_+oC@-V{M5ePq*#dQTo9)r*jDB
Mfsb#k*_3J$W~;1#T7Snl~^P?5Bj7nZ$A
"""


def rows(count: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the polynomial and the first numbers of each of the first dimensions."""
    if count:
        yield 1, [1]
    text = bin(int.from_bytes(b85decode("".join(PACKED.split())), "big"))[3:]
    at = 0

    def take(width: int) -> int:
        nonlocal at
        at += width
        return int(text[at - width : at], 2) if width else 0

    for _ in range(count - 1):
        degree = take(5)
        polynomial = (1 << degree) | (take(degree - 1) << 1) | 1
        yield polynomial, [2 * take(i) + 1 for i in range(degree)]
